"""The directory of an enterprise: its objects, the rules they keep, and copies of them."""
