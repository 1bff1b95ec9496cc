"""Queues and what they hold, who has them open, and how much all of them may hold."""
