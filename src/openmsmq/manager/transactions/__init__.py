"""Transactions and batches: several sends and receives that take effect together."""
