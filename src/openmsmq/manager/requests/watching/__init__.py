"""What those ask who watch a queue manager: lists of queues, sessions, connections; status."""
