"""Bodies of messages as a page may show them: decoded by type, laid out, and never interpreted."""
