"""Copies of a store: of one moment while it is used, with a manifest, and put back."""
