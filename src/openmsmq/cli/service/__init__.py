"""Commands about one queue manager: run it, see how it is, its store, tokens and keys."""
