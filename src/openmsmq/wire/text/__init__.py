"""Packets as people read them: trees, one-line summaries, and what bodies say."""
