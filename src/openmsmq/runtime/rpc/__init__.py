"""The doors of remote procedure calls: who comes in, and what carries their calls out."""
