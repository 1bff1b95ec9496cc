"""A picture of an enterprise: boxes, lines and texts, without fonts and without randomness."""
