"""What a batch is before it is in the journal, and how other computers get it."""
