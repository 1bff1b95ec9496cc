"""Fields that several headers have: strings, names, property values, alignment."""
