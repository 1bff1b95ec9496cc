"""Who somebody is, and what an access list allows."""
