"""What pages ask the queue manager for, and what they have it do."""
