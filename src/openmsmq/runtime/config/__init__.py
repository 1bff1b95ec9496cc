"""The configuration: a file, the environment and flags become frozen values, or a sentence."""
