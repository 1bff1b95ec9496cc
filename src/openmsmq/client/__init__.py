"""The application's side of a queue manager: one engine, a blocking shell and an asyncio shell."""
