"""Queues as tables and streams of Spark: the data source `msmq`, and ready pipelines."""
