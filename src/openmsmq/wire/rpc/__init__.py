"""Remote procedure calls as bytes: fragments, the syntax of parameters, and what is asked with them."""
