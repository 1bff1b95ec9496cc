"""How a queue manager reaches its directory: joining, asking, changing, finding a server."""
