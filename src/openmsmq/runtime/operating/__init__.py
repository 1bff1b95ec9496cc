"""What operators ask of the running program: its configuration, and what it logs."""
