"""What applications ask for: one module for each kind of request. The top of the manager."""
