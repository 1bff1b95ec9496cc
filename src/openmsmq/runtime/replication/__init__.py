"""A queue manager on several computers: the log in PostgreSQL, the primary and the standby."""
