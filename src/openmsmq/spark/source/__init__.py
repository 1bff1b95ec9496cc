"""How queues are read: batches and streams are planned in the driver, and tasks fetch ranges."""
