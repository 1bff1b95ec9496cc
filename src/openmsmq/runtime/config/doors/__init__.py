"""Tables of a configuration file about doors through which others come in."""
