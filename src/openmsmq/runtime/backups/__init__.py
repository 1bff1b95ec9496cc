"""Back-ups of a queue manager: where they may go, what is in them, and who makes them."""
