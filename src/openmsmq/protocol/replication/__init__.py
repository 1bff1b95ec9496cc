"""A queue manager on several computers: one log of its turns, one primary, and who follows it."""
