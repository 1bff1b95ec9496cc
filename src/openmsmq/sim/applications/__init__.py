"""Applications in a run: workers, streams as Spark has them, and an administrator."""
