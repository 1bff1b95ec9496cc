"""What applications send to multicast addresses."""
