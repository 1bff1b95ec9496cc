"""Bytes to packets and back: pure and total. Decoding raises `DecodeError` or nothing."""
