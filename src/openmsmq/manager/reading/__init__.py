"""Reading messages: one by one, in two steps, or very many by arrival number."""
