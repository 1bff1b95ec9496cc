"""Readers on other computers, and the door through which they come to a queue manager."""
