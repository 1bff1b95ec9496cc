"""What operators do, on top of the verbs of the clients: for console and commands alike."""
