"""Signatures, encryption and access rights: pure functions over bytes and keys."""
