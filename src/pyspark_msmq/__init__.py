"""Spark looks for modules whose names begin with pyspark_: by this one it finds `msmq`."""

from openmsmq.spark.source.data_source import MsmqDataSource


class DefaultSource(MsmqDataSource):
    """The data source `msmq`, found without registration."""
