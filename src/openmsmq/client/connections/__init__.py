"""Connections to a queue manager: one engine, and a connection for threads and one for asyncio."""
