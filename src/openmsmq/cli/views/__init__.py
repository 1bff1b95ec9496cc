"""How results are shown: to people at a terminal, and to programs."""
