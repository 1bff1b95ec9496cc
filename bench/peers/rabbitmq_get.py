"""RabbitMQ, read one by one: `basic_get` with manual acknowledgment on a `BlockingConnection`.

An acknowledgment is sent and not waited for: the broker confirms none, and syncs none.
"""

from __future__ import annotations

from typing import Final

from bench.peers import rabbitmq
from bench.peers.pair import BODY, Gate, Job
from bench.peers.rabbitmq import parameters, properties_of

NAME: Final = rabbitmq.NAME
missing = rabbitmq.missing
start = rabbitmq.start


def prepare(address: str, job: Job) -> None:
    """Make the queue of a job, with all its messages."""
    import pika

    connection = pika.BlockingConnection(parameters(address))
    channel = connection.channel()
    channel.queue_declare(job.queue, durable=job.durable)
    for _ in range(job.warm_up + job.count):
        channel.basic_publish("", job.queue, BODY, properties_of(job))
    # The broker has taken all of them when it has closed the channel.
    channel.close()
    connection.close()


def consume(address: str, job: Job, gate: Gate) -> list[float]:
    """Receive the messages of a job, one by one."""
    import pika

    connection = pika.BlockingConnection(parameters(address))
    channel = connection.channel()

    def receive() -> None:
        method, _, body = channel.basic_get(job.queue)
        if method is None or body != BODY:
            raise ValueError(f"no message came, but {method}")
        channel.basic_ack(method.delivery_tag)

    for _ in range(job.warm_up):
        receive()
    gate.wait()
    for _ in range(job.count):
        receive()
    # The broker has read all acknowledgments when it has closed the channel.
    channel.close()
    connection.close()
    return []
