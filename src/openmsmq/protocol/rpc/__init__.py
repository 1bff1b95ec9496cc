"""The server of remote procedure calls: bytes and results in, calls and bytes out."""
