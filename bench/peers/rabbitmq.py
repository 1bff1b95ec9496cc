"""RabbitMQ: a broker of its own from the Debian package, driven by pika.

Batched work runs on a `SelectConnection`, with confirmations that come when they come, up to
`IN_FLIGHT_COUNT` under way, and one acknowledgment for `ACK_EVERY` messages. Work one by one runs
on a `BlockingConnection` in confirm mode: each publish returns when the broker has confirmed it.
"""

from __future__ import annotations

import abc
import contextlib
import importlib.util
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.peers.pair import BODY, Gate, Job, send_at_pace
from bench.peers.process import HOST, ServerFailed, answers, child, free_port, wait_until

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingChannel

NAME: Final = "RabbitMQ"
IN_FLIGHT_COUNT: Final = 200
ACK_EVERY: Final = 32

_SERVER: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_START_S: Final = 90.0
_QUIET_S: Final = 60.0


def missing() -> str | None:
    """What keeps it from being measured, if anything."""
    if not _SERVER.exists():
        return "the Debian package rabbitmq-server is not installed"
    if importlib.util.find_spec("pika") is None:
        return "the Python package pika is not installed"
    return None


@contextlib.contextmanager
def start(directory: Path) -> Iterator[str]:
    """Run a broker; gives its address."""
    home = directory / "rabbitmq"
    home.mkdir()
    port, names_port, node_port = free_port(), free_port(), free_port()
    (home / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = {HOST}:{port}\nlog.file.level = warning\n"
    )
    (home / "advanced.config").write_text("[{kernel,[{inet_dist_use_interface,{127,0,0,1}}]}].\n")
    (home / "enabled_plugins").write_text("[].\n")
    environment = {
        **os.environ,
        "HOME": str(home),
        "ERL_EPMD_PORT": str(names_port),
        "ERL_EPMD_ADDRESS": HOST,
        "RABBITMQ_NODENAME": "bench@localhost",
        "RABBITMQ_DIST_PORT": str(node_port),
        "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "advanced.config"),
        # Without a shell in between, so that the process we started is the broker itself.
        "RUNNING_UNDER_SYSTEMD": "true",
    }
    log = home / "start.log"
    names = ["epmd", "-address", HOST, "-port", str(names_port)]
    with child(names, log, environment) as epmd:
        wait_until(lambda: answers(names_port), epmd, log, _START_S)
        with child([str(_SERVER)], log, environment) as broker:
            wait_until(lambda: _greets(port), broker, log, _START_S)
            yield f"{HOST}:{port}"


def _greets(port: int) -> bool:
    """Whether a client may log in; the port is open some time before that."""
    import pika

    if not answers(port):
        return False
    with contextlib.suppress(pika.exceptions.AMQPError, OSError):
        pika.BlockingConnection(parameters(f"{HOST}:{port}")).close()
        return True
    return False


def parameters(address: str) -> Any:
    import pika

    host, _, port = address.rpartition(":")
    return pika.ConnectionParameters(host, int(port), heartbeat=0)


def prepare(address: str, job: Job) -> None:
    """Make the queue of a job."""
    import pika

    connection = pika.BlockingConnection(parameters(address))
    connection.channel().queue_declare(job.queue, durable=job.durable)
    connection.close()


def properties_of(job: Job) -> Any:
    import pika

    return pika.BasicProperties(delivery_mode=2 if job.durable else 1)


# One by one.


def produce(address: str, job: Job, gate: Gate) -> list[float]:
    """Publish the messages of a job."""
    if job.one_by_one or job.per_second:
        return _with_channel(address, lambda channel: _publish_each(channel, job, gate))
    _Producer(address, job, gate).run()
    return []


def consume(address: str, job: Job, gate: Gate) -> list[float]:
    """Consume the messages of a job."""
    if job.one_by_one or job.per_second:
        return _with_channel(address, lambda channel: _consume_each(channel, job, gate))
    _Consumer(address, job, gate).run()
    return []


def _with_channel(address: str, work: Callable[[BlockingChannel], list[float]]) -> list[float]:
    import pika

    connection = pika.BlockingConnection(parameters(address))
    try:
        return work(connection.channel())
    finally:
        connection.close()


def _publish_each(channel: BlockingChannel, job: Job, gate: Gate) -> list[float]:
    channel.confirm_delivery()
    properties = properties_of(job)

    def send() -> None:
        channel.basic_publish("", job.queue, BODY, properties)

    for _ in range(job.warm_up):
        send()
    gate.wait()
    if job.per_second:
        return send_at_pace(job.per_second, job.count, send)
    for _ in range(job.count):
        send()
    return []


def _consume_each(channel: BlockingChannel, job: Job, gate: Gate) -> list[float]:
    channel.basic_qos(prefetch_count=IN_FLIGHT_COUNT)
    if not job.warm_up:
        gate.wait()
    for done, (method, _, _) in enumerate(channel.consume(job.queue), start=1):
        channel.basic_ack(method.delivery_tag)
        if done == job.warm_up + job.count:
            break
        if done == job.warm_up:
            gate.wait()
    return []


# Batched.


class _Worker(abc.ABC):
    """A SelectConnection with one channel, from its opening to the end of the job."""

    def __init__(self, address: str, job: Job, gate: Gate) -> None:
        import pika

        self._job = job
        self._gate = gate
        self._total = job.warm_up + job.count
        self._done = False
        self._channel: Any
        self._connection = pika.SelectConnection(
            parameters(address), on_open_callback=self._opened, on_close_callback=self._closed
        )

    def run(self) -> None:
        """Work until the job is done."""
        with _alarm(_QUIET_S * 5):
            self._connection.ioloop.start()

    def _opened(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._channel_opened)

    def _channel_opened(self, channel: Any) -> None:
        self._channel = channel
        self._begin()

    @abc.abstractmethod
    def _begin(self) -> None:
        """Start the work, now that the channel is open."""

    def _finish(self) -> None:
        self._done = True
        self._connection.close()

    def _closed(self, connection: Any, reason: Exception) -> None:
        connection.ioloop.stop()
        if not self._done:
            raise ServerFailed(f"the broker closed the connection: {reason}")


class _Producer(_Worker):
    """Publishes with up to `IN_FLIGHT_COUNT` messages that are not confirmed yet."""

    def _begin(self) -> None:
        self._sent = 0
        self._under_way: set[int] = set()
        """The numbers that wait for their confirmation; several may come as one, up to a number."""
        self._lowest = 1
        self._limit = self._job.warm_up
        self._properties = properties_of(self._job)
        self._channel.confirm_delivery(self._on_confirmed, callback=self._confirming)

    def _confirming(self, _: Any) -> None:
        if not self._limit:
            self._pass_gate()
        self._publish()

    def _pass_gate(self) -> None:
        self._gate.wait()
        self._limit = self._total

    def _on_confirmed(self, frame: Any) -> None:
        method = frame.method
        if method.NAME != "Basic.Ack":
            raise ServerFailed("the broker refused a message")
        tag = method.delivery_tag
        if method.multiple:
            self._under_way.difference_update(range(self._lowest, tag + 1))
            self._lowest = tag + 1
        else:
            self._under_way.discard(tag)
        if not self._under_way and self._sent == self._total:
            self._finish()
            return
        if not self._under_way and self._sent == self._job.warm_up:
            self._pass_gate()
        self._publish()

    def _publish(self) -> None:
        publish, queue, properties = self._channel.basic_publish, self._job.queue, self._properties
        while self._sent < self._limit and len(self._under_way) < IN_FLIGHT_COUNT:
            publish("", queue, BODY, properties)
            self._sent += 1
            self._under_way.add(self._sent)


class _Consumer(_Worker):
    """Consumes; durable messages are acknowledged every `ACK_EVERY`, others need none."""

    def _begin(self) -> None:
        self._received = 0
        if not self._job.warm_up:
            self._gate.wait()
        self._channel.basic_qos(prefetch_count=IN_FLIGHT_COUNT, callback=self._ready)

    def _ready(self, _: Any) -> None:
        self._channel.basic_consume(
            self._job.queue, self._on_message, auto_ack=not self._job.durable
        )

    def _on_message(self, channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        self._received += 1
        last = self._received in (self._job.warm_up, self._total)
        if self._job.durable and (last or self._received % ACK_EVERY == 0):
            channel.basic_ack(method.delivery_tag, multiple=True)
        if self._received == self._total:
            self._finish()
        elif last:
            self._gate.wait()


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """End a loop that waits for something that never comes."""

    def late(*_: object) -> None:
        raise ServerFailed(f"the broker did not do its part within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
