"""From packets to columns: everything that is decoded is decoded for many messages at once."""
