"""What is said in remote procedure calls: bytes to values and back, pure and total."""
