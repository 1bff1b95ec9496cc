"""Pages about the program around the queue manager: its configuration, and its audit log."""
