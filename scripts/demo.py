"""`make demo`: the main job, from orders in queues to a report that people look at.

Four queue managers on loopback addresses: two branches send orders to headquarters, through a hub
that is killed in the middle of it. Some orders go wrong on purpose. Then Spark reads what all of
them have: messages become a table, the table becomes one row per message that says what became
of it, and that becomes a report. Options: a number of orders for each branch, and a directory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import openmsmq
from openmsmq.model.errors import ReceiveTimeout
from openmsmq.model.identity import Guid
from openmsmq.model.message import AckRequest
from scripts.stage import Ports, Server, heading, note, serving, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACES = {"HQ": "127.0.0.10", "HUB": "127.0.0.11", "NORTH": "127.0.0.12", "SOUTH": "127.0.0.13"}
BRANCHES = ("NORTH", "SOUTH")
ORDERS, ACKS, TRACES = r"private$\orders", r"private$\acks", r"private$\traces"
EVIDENCE = "*,*;journal,system$;journal,system$;deadletter,system$;deadxact"
TRANSACTION_COUNT = 10
DOWN_S = 5
"""How long the hub is down: long enough to be seen in a report of seconds."""
LEFT_COUNT = 100
"""Orders that nobody has worked on yet when the day is over, and fewer."""
PAUSE_S = 0.02
"""Between two transactions of a branch, so that there is a stream and not a heap."""
GOODS = ("tea", "milk", "scones", "jam", "butter")


class Enterprise:
    """The four queue managers."""

    def __init__(self, directory: Path, parts: contextlib.ExitStack) -> None:
        self.ports = Ports(tuple(PLACES.values()))
        self.directory = directory
        self.servers: dict[str, Server] = {}
        self._parts = parts

    def start(self) -> None:
        """Start all; then tell each where the others are, which needs their identities."""
        for name in PLACES:
            self._configure(name, {})
            self.servers[name] = self._parts.enter_context(
                serving(name, PLACES[name], self.directory, "--config", f"{name.lower()}.toml")
            )
        identities = {}
        for name in PLACES:
            with self.connect(name) as manager:
                identities[name] = str(manager.context.manager)
        for branch in BRANCHES:
            self._configure(branch, {identities["HQ"]: "HUB"})
        self._configure("HUB", {identities[name]: name for name in ("HQ", *BRANCHES)})
        self._configure("HQ", {identities[name]: "HUB" for name in BRANCHES})
        for server in self.servers.values():
            server.stop()
            server.start(quietly=True)

    def _configure(self, name: str, next_hops: dict[str, str]) -> None:
        hosts = "".join(f'{other} = "{address}"\n' for other, address in PLACES.items())
        hops = "".join(f'"{target}" = "{PLACES[hop]}"\n' for target, hop in next_hops.items())
        (self.directory / f"{name.lower()}.toml").write_text(
            f"api_port = {self.ports.api}\n\n[hosts]\n{hosts}\n[next_hops]\n{hops}\n"
            f"[parameters]\nTryConnectInterval = 300\nMsmqIpPort = {self.ports.sessions}\n"
            "EnablePingService = false\nSeqResend13Time = 1\nSeqMaxAckDelay = 1\n"
            # The hub tells of the orders that pass it: so it is on their path in the report.
            f"EnableReportMessages = {str(name == 'HUB').lower()}\n",
            encoding="utf-8",
        )

    def connect(self, name: str) -> openmsmq.QueueManager:
        return openmsmq.connect(self.qm(name))

    def qm(self, name: str) -> str:
        return self.ports.qm(PLACES[name])


# The order stream.


def send_orders(
    enterprise: Enterprise, branch: str, destination: str, traces: Guid, count: int
) -> None:
    """Send orders in transactions; one in fifty goes to a queue that does not exist."""
    chance = random.Random(branch)
    wrong = destination.rpartition("\\")[0] + "\\" + str(999)
    with enterprise.connect(branch) as manager:
        # Acknowledgments come back to the branch, by the name of its administration queue.
        acks = manager.names(ACKS).private_name
        for first in range(0, count, TRANSACTION_COUNT):
            with manager.transaction() as work:
                for number in range(first, min(first + TRANSACTION_COUNT, count)):
                    order = {
                        "order": f"{branch}-{number}",
                        "what": chance.choice(GOODS),
                        "pieces": chance.randint(1, 9),
                    }
                    late = chance.random() < 0.02
                    manager.queue(wrong if chance.random() < 0.02 else destination).send(
                        json.dumps(order),
                        transaction=work,
                        label=f"order {branch}-{number}",
                        admin_queue=acks,
                        acknowledge=AckRequest.FULL_RECEIVE | AckRequest.POSITIVE_ARRIVAL,
                        trace_queue=traces,
                        journal_on_failure=True,
                        journal_on_success=True,
                        time_to_be_received_s=1 if late else None,
                    )
            time.sleep(PAUSE_S)


def receive_orders(enterprise: Enterprise, over: threading.Event) -> None:
    """Work at headquarters: take orders one after the other, until it is over."""
    with enterprise.connect("HQ") as manager:
        orders = manager.queue(ORDERS)
        while not over.is_set():
            with contextlib.suppress(ReceiveTimeout), manager.transaction() as work:
                for _ in range(TRANSACTION_COUNT):
                    orders.receive(timeout=0.2, transaction=work)


def order_stream(enterprise: Enterprise, count: int) -> list[tuple[datetime, str]]:
    """Run the day; gives when the hub failed."""
    with enterprise.connect("HQ") as manager:
        manager.create_queue(ORDERS, transactional=True, journaling=True)
        destination = manager.names(ORDERS).private_name
    for branch in BRANCHES:
        with enterprise.connect(branch) as manager:
            manager.create_queue(ACKS)
    with enterprise.connect("HUB") as manager:
        manager.create_queue(TRACES)
        (traces,) = (each for each in manager.queues() if each.path_name == TRACES)
    over = threading.Event()
    workers = [
        threading.Thread(
            target=send_orders,
            args=(enterprise, branch, destination, Guid(traces.identifier), count),
        )
        for branch in BRANCHES
    ]
    receiver = threading.Thread(target=receive_orders, args=(enterprise, over))
    for thread in (*workers, receiver):
        thread.start()
    wait_until(lambda: _waiting(enterprise, "HQ") > 0 or not workers[0].is_alive(), "orders come")
    time.sleep(count / TRANSACTION_COUNT * PAUSE_S / 2)
    note("Half of the orders are on their way. The hub fails:")
    enterprise.servers["HUB"].kill()
    killed = datetime.fromtimestamp(time.time(), UTC)  # noqa: TID251
    time.sleep(DOWN_S)
    note(f"{_outgoing(enterprise)} messages wait at the branches. The hub comes back:")
    enterprise.servers["HUB"].start()
    for thread in workers:
        thread.join()
    wait_until(lambda: _outgoing(enterprise) == 0, "everything has left the branches", 60)
    wait_until(lambda: _orders_waiting(enterprise) < LEFT_COUNT, "the orders are worked off", 60)
    over.set()
    receiver.join()
    return [(killed, "HUB was killed")]


def _waiting(enterprise: Enterprise, name: str) -> int:
    with enterprise.connect(name) as manager:
        return manager.status().message_count


def _orders_waiting(enterprise: Enterprise) -> int:
    with enterprise.connect("HQ") as manager:
        return manager.queue(ORDERS).count()


def _outgoing(enterprise: Enterprise) -> int:
    total = 0
    for name in PLACES:
        with contextlib.suppress(ConnectionError), enterprise.connect(name) as manager:
            total += sum(queue.message_count for queue in manager.outgoing())
    return total


# What Spark makes of it.


@contextlib.contextmanager
def spark_session() -> Iterator[SparkSession]:
    from openmsmq.spark.session import make_session

    session = make_session("openmsmq demo")
    try:
        yield session
    finally:
        session.stop()


def data_pipeline(
    spark: SparkSession,
    enterprise: Enterprise,
    output: Path,
    happened: list[tuple[datetime, str]],
) -> Path:
    from openmsmq.spark.pipelines.delivery.tables import (
        managers_at,
        read_deliveries,
        read_events,
        write_results,
    )
    from openmsmq.spark.pipelines.ingest import ingest
    from openmsmq.spark.pipelines.report import Event, report

    heading("4. Ingest: every queue, journal and dead letter of all four, into one Parquet table")
    options = {
        "qm": ",".join(enterprise.qm(name) for name in PLACES),
        "queue": EVIDENCE,
        "mode": "browse",
    }
    begin = time.perf_counter()
    for old in ("messages", "messages.checkpoint", "results"):
        shutil.rmtree(output / old, ignore_errors=True)
    ingest(spark, options, str(output / "messages")).awaitTermination()
    messages = spark.read.parquet(str(output / "messages"))
    print(f"{messages.count():,} messages in {time.perf_counter() - begin:.0f} s", flush=True)

    heading("5. Delivery: one row for each order, what became of it and how long it took")
    tables = str(output / "results")
    write_results(spark, messages, tables, managers=managers_at({"qm": options["qm"]}))
    deliveries = read_deliveries(spark, tables)
    show_outcomes(deliveries)
    page = output / "report.html"
    events = [Event(*each) for each in (*read_events(spark, tables), *happened)]
    page.write_text(
        report(deliveries, title="Orders to headquarters", events=events), encoding="utf-8"
    )
    return page.resolve()


def show_outcomes(deliveries: DataFrame) -> None:
    rows = deliveries.groupBy("outcome", "reason").count().orderBy("outcome", "reason").collect()
    for row in rows:
        print(f"  {row['count']:>7,}  {row['outcome']:<14} {row['reason'] or ''}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=2000, help="orders of each branch")
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="where tables go")
    options = parser.parse_args()
    started = time.perf_counter()
    os.environ.setdefault("OPENMSMQ_LOG_LEVEL", "error")
    options.output.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as parts:
        directory = parts.enter_context(tempfile.TemporaryDirectory(prefix="openmsmq-demo-"))
        heading("1. Four queue managers: headquarters, a hub, and two branches")
        enterprise = Enterprise(Path(directory), parts)
        enterprise.start()
        heading(f"2. Each branch sends {options.orders:,} orders through the hub, which fails")
        happened = order_stream(enterprise, options.orders)
        heading("3. Start Spark")
        spark = parts.enter_context(spark_session())
        report = data_pipeline(spark, enterprise, options.output, happened)
    heading("Done")
    print(f"  The report: {report}")
    print(f"  Or in a browser elsewhere: openmsmq report serve {options.output}/report.html")
    print(f"  The tables: {options.output}")
    print(
        f"  `make tour` shows queue managers step by step. This took "
        f"{time.perf_counter() - started:.0f} seconds."
    )


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        # Whoever read this has seen enough; nothing may be written any more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
