"""What a signature covers, how it is made, and how it is checked."""
