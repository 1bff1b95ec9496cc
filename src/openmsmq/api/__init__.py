"""What applications and a queue manager say to each other, and how it is written as bytes."""
