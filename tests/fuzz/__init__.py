"""Feeding the decoders bad bytes: `make fuzz` looks long, `make test` replays and looks shortly."""
