"""What other queue managers send: where it goes, in which order, and what they are told."""
