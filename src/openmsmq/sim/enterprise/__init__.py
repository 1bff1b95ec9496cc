"""An enterprise in a run: its directory, and where messages may go by it."""
