"""Commands for those who operate a queue manager that runs."""
