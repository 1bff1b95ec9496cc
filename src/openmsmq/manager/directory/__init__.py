"""The directory as this queue manager knows it: its copy, names, ways, and its own keys."""
