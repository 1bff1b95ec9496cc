"""Definitions: the queues of a queue manager, their properties and rights, as a file."""
