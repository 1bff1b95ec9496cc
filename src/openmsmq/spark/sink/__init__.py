"""How rows become messages: tasks prepare parts of a batch, and the driver commits them."""
