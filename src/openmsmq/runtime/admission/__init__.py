"""Who is let in, and how much of a door, of memory and of time one address may take."""
