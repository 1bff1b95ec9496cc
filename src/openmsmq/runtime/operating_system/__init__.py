"""What only the operating system knows or keeps: files, networks, owners of sockets."""
