"""Commands about the enterprise: its directory, its servers, its routes."""
