"""Connections with other queue managers: TCP, TLS, datagrams and names."""
