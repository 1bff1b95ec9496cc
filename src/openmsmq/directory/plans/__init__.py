"""Plans: an enterprise as a file describes it, and the changes that make a directory so."""
