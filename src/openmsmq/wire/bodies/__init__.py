"""Bodies with a layout of their own: acknowledgments of order, and change notifications."""
