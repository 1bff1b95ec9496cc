"""The adversary: what it knows, where it sits, and what it forges."""
