"""Connections to a queue manager: one engine, and a link for threads and one for asyncio."""
