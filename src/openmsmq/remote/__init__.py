"""Calls of RPC as requests of the application interface, and replies as results: no I/O."""
