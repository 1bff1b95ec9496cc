"""Into a queue, out of it, and what that causes: copies, reports, expiry."""
