"""Bundles: records of the base that follow each other and are kept as one; see `bundle`."""
