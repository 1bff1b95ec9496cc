"""Redis Streams: a server of its own that syncs every write, driven by redis-py in pipelines."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.peers.pair import BODY, Gate, Job
from bench.peers.process import child, wait_until

NAME: Final = "Redis Streams"
PIPELINE_COUNT: Final = 64

_GROUP: Final = "readers"
_READER: Final = "reader"
_START_S: Final = 30.0
_WAIT_MS: Final = 60_000


def missing() -> str | None:
    """What keeps it from being measured, if anything."""
    if shutil.which("redis-server") is None:
        return "the Debian package redis-server is not installed"
    for name in ("redis", "hiredis"):
        # Without hiredis its client is half as fast, and the comparison would flatter us.
        if importlib.util.find_spec(name) is None:
            return f"the Python package {name} is not installed"
    return None


@contextlib.contextmanager
def start(directory: Path) -> Iterator[str]:
    """Run a server; gives its address."""
    home = directory / "redis"
    home.mkdir()
    address = str(home / "redis.sock")
    settings = {
        "port": "0",
        "unixsocket": address,
        "dir": str(home),
        "appendonly": "yes",
        "appendfsync": "always",
        "save": "",
        "daemonize": "no",
    }
    command = ["redis-server", *(word for key in settings for word in (f"--{key}", settings[key]))]
    log = home / "start.log"
    with child(command, log) as server:
        wait_until(lambda: _answers(address), server, log, _START_S)
        yield address


def _client(address: str) -> Any:
    import redis

    return redis.Redis(unix_socket_path=address)


def _answers(address: str) -> bool:
    import redis

    with contextlib.suppress(redis.exceptions.RedisError), _client(address) as client:
        return bool(client.ping())
    return False


def prepare(address: str, job: Job) -> None:
    """Make the stream of a job and its group of readers."""
    with _client(address) as client:
        client.xgroup_create(job.queue, _GROUP, id="0", mkstream=True)


def produce(address: str, job: Job, gate: Gate) -> list[float]:
    """Add the messages of a job."""
    with _client(address) as client:

        def add(count: int) -> None:
            while count > 0:
                step = min(PIPELINE_COUNT, count)
                pipeline = client.pipeline(transaction=False)
                for _ in range(step):
                    pipeline.xadd(job.queue, {"body": BODY})
                pipeline.execute()
                count -= step

        add(job.warm_up)
        gate.wait()
        add(job.count)
    return []


def consume(address: str, job: Job, gate: Gate) -> list[float]:
    """Read and acknowledge the messages of a job."""
    with _client(address) as client:

        def take(count: int) -> None:
            while count > 0:
                wanted = min(PIPELINE_COUNT, count)
                found = client.xreadgroup(
                    _GROUP, _READER, {job.queue: ">"}, count=wanted, block=_WAIT_MS
                )
                names = [name for _, messages in found for name, _ in messages]
                client.xack(job.queue, _GROUP, *names)
                count -= len(names)

        take(job.warm_up)
        gate.wait()
        take(job.count)
    return []
