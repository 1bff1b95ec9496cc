"""State machines: long random histories against simple models."""
