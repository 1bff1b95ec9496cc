"""The queue manager as a process: sockets, clocks and the disk around the deterministic core."""
