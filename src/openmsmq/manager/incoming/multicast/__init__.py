"""What comes to multicast addresses that queues have."""
