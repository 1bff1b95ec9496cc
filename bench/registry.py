"""The benches there are, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from bench import (
    backlog,
    codec,
    console,
    encrypted_transfer,
    encryption,
    floods,
    hostile,
    hostile_rpc,
    http_posts,
    multicast,
    queues,
    remote,
    routes,
    small,
    spark,
    spark_tasks,
    tls_transfer,
    transfer,
)
from bench.measure import Effort, Figure

Bench: TypeAlias = Callable[[Effort], Iterable[Figure]]

BENCHES: Final[dict[str, Bench]] = {
    "codec": codec.run,
    "queues": queues.run,
    "remote": remote.run,
    "transfer": transfer.run,
    "tls-transfer": tls_transfer.run,
    "encryption": encryption.run,
    "encrypted-transfer": encrypted_transfer.run,
    "backlog": backlog.run,
    "transfer-long": transfer.run_long,
    "spark": spark.run,
    "spark-tasks": spark_tasks.run,
    "routes": routes.run,
    "small-pipelines": small.run,
    "hostile": hostile.run,
    "hostile-rpc": hostile_rpc.run,
    "floods": floods.run,
    "console": console.run,
    "http": http_posts.run,
    "multicast": multicast.run,
}

ON_REQUEST: Final = frozenset(
    {
        "backlog",
        "transfer-long",
        "spark",
        "spark-tasks",
        "routes",
        "small-pipelines",
        "hostile",
        "hostile-rpc",
        "floods",
        "console",
        "http",
        "multicast",
    }
)
"""Benches that take minutes: they run when they are named."""
