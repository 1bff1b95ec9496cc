"""Reliable multicast: sources that repair what was lost, and receivers that ask for it."""
