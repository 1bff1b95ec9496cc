"""The application interface: its doors, who comes through them, and what is written down of it."""
