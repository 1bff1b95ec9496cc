"""Run a project of Spark Declarative Pipelines twice, and say what its tables have after each run.

    python -m tests.spark.declarative_runs PROJECT QUEUE_MANAGER

As `spark-pipelines` does it, but in one process, which starts Spark once. Before each run messages
are sent. This is the only Spark Connect among the tests, and to start it takes long: so what else
works over it is tried at the end, `ingest` too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from deltalake import DeltaTable
from pyspark.pipelines.cli import load_pipeline_spec, register_definitions
from pyspark.pipelines.spark_connect_graph_element_registry import (
    SparkConnectGraphElementRegistry,
)
from pyspark.pipelines.spark_connect_pipeline import (
    create_dataflow_graph,
    handle_pipeline_events,
    start_run,
)
from pyspark.sql import DataFrame, SparkSession

import openmsmq
from openmsmq.spark.errors import TableProblem
from openmsmq.spark.pipelines.declarative_project import CATALOG, SPEC
from openmsmq.spark.pipelines.ingest import batch_reports, ingest


def start_spark(project: Path) -> SparkSession:
    builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "1")
    for line in (project / CATALOG).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            builder = builder.config(*line.split(" ", 1))
    return builder.getOrCreate()


def run(spark: SparkSession, file: Path) -> None:
    spec = load_pipeline_spec(file)
    graph = create_dataflow_graph(spark, spec.catalog, spec.database, spec.configuration)
    registry = SparkConnectGraphElementRegistry(spark, graph)
    register_definitions(file, registry, spec, spark, graph)
    events = start_run(spark, graph, [], False, [], False, spec.storage)
    handle_pipeline_events(events)


def over_connect(
    spark: SparkSession, manager: openmsmq.QueueManager, folder: Path
) -> dict[str, list[str]]:
    """Read, write and stream; gives the bodies that were seen after each."""
    here, there = r"private$\here", r"private$\there"
    orders = manager.create_queue(here, transactional=True)
    results = manager.create_queue(there, transactional=True)
    orders.send_many(["a", "b"], transaction=openmsmq.SINGLE_MESSAGE)
    qm = manager.settings.address
    source = {"qm": qm, "queue": here, "columns": "text,label"}

    def arrived() -> list[str]:
        return [str(message.body) for message in results.messages(timeout=0)]

    def write(rows: DataFrame, batch: int) -> None:
        sink = {"qm": qm, "queue": there, "query": f"each {batch}"}
        rows.write.format("msmq").mode("append").options(**sink).save()

    read = spark.read.format("msmq").options(**source).load()
    found = {"read": [row.text for row in read.collect()]}
    write(read.selectExpr("text AS body"), 0)
    found["written"] = arrived()
    streamed = spark.readStream.format("msmq").options(**source).load().selectExpr("text AS body")
    (
        streamed.writeStream.format("msmq")
        .options(qm=qm, queue=there, checkpointLocation=str(folder / "streamed"))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    found["streamed"] = arrived()
    orders.send_many(["c"], transaction=openmsmq.SINGLE_MESSAGE)
    again = spark.readStream.format("msmq").options(**source, reader="again").load()
    (
        again.selectExpr("text AS body")
        .writeStream.foreachBatch(lambda rows, batch: write(rows, batch + 1))
        .option("checkpointLocation", str(folder / "again"))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    found["each batch"] = arrived()
    return found


def ingested(
    spark: SparkSession, manager: openmsmq.QueueManager, address: str
) -> dict[str, object]:
    """Write a queue into a table, and try to write another table there."""
    queue = manager.create_queue(r"private$\ingested")
    queue.send_many(["one", "two"], recoverable=True)
    options = {"qm": address, "queue": queue.name, "columns": "queue,arrived_time,text"}
    query = ingest(spark, options, "ingested", format="delta")
    assert query.awaitTermination(100), query.exception()
    reports = batch_reports(query, options, -1)
    try:
        ingest(spark, options, "ingested", format="delta", partition_by=())
        refused = ""
    except TableProblem as problem:
        refused = str(problem)
    table = DeltaTable("ingested").to_pyarrow_dataset().to_table()
    return {
        "texts": sorted(table["text"].to_pylist()),
        "reported": [report.message_count for report in reports],
        "waiting": queue.count(),
        "refused": refused,
    }


def main() -> None:
    project, address = Path(sys.argv[1]), sys.argv[2]
    spark = start_spark(project)
    with openmsmq.connect(address) as manager:
        orders = manager.create_queue(r"private$\orders")
        for bodies in (["order 0", "order 1"], ["order 2"]):
            for body in bodies:
                orders.send(body, label="order")
            run(spark, project / SPEC)
            found = {
                "messages": [row.text for row in spark.table("messages").sort("text").collect()],
                "outcomes": [row.outcome for row in spark.table("delivery").collect()],
                "by_queue": [row.message_count for row in spark.table("by_queue").collect()],
            }
            print(f"\n{json.dumps(found)}", flush=True)
        found = over_connect(spark, manager, project.parent)
        print(f"\n{json.dumps(found)}", flush=True)
        print(f"\n{json.dumps(ingested(spark, manager, address))}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
