"""What must hold in a run, judged from outside the queue managers."""
