"""Messages on the side of the application: those to send, those received, and their protection."""
