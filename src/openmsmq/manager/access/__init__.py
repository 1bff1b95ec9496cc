"""Whether a caller may do what it asks for, and whether a message may enter a queue."""
