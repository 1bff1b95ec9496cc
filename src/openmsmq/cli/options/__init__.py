"""What many commands take: how to reach a queue manager, which messages to read, whom to name."""
