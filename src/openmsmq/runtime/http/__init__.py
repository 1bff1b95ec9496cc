"""HTTP/1.1: the door for SRMP and for programs without a library, and what posts to others."""
