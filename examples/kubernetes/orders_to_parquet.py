"""A stream from a queue into Parquet, as a job for any master of Spark."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main() -> None:
    """Stream until somebody ends it: QUEUE_MANAGER SECRETS TABLE CHECKPOINT."""
    address, secrets, table, checkpoint = sys.argv[1:]
    spark = SparkSession.builder.appName("orders").getOrCreate()
    orders = (
        spark.readStream.format("msmq")
        .option("qm", address)
        .option("queue", r"private$\orders")
        .option("reader", "orders-to-parquet")
        .option("tokenFile", f"{secrets}/token")
        .option("ca", f"{secrets}/ca.pem")
        .load()
    )
    query = (
        orders.writeStream.format("parquet")
        .option("path", table)
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="5 seconds")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
