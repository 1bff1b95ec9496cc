"""Posts that leave: a lane for each URL, and what bounds all of them."""
