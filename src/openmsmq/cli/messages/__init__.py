"""Commands about messages: send, receive, look, export, import, sign."""
