"""One turn: what becomes durable, what follows when it is, and the numbers given in it."""
