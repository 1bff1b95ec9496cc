"""The vocabulary: frozen values and enumerations that every other package speaks."""
