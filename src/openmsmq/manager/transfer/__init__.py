"""Sessions and links with other queue managers, and which message goes through which."""
