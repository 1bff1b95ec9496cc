"""Spark jobs and queue managers that are killed while messages flow, and what must be true then."""
