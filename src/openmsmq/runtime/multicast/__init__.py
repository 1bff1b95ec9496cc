"""Multicast: sockets of IP protocol 113, and what moves packets between them and the machines."""
