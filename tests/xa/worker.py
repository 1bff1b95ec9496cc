"""A program that moves messages from a queue into a table and another queue, exactly once.

Before each step it says which one on its output, and goes on when it is told to.
"""

from __future__ import annotations

import sys

import psycopg

import openmsmq as mq
from openmsmq.model.errors import ReceiveTimeout
from tests.xa.rehearsal import Rehearsal

ORDERS = r"private$\orders"
RESULTS = r"private$\results"


def at(step: str) -> None:
    print(step, flush=True)
    sys.stdin.readline()


def main(address: str, database: str) -> None:
    with mq.connect(address) as manager, psycopg.connect(database) as connection:
        orders, results = manager.queue(ORDERS), manager.queue(RESULTS)
        both = Rehearsal(manager, connection, at=at, name="mover")
        while True:
            try:
                with both as transaction:
                    message = orders.receive(timeout=0, transaction=transaction)
                    connection.execute("INSERT INTO moved VALUES (%s)", [int(message.label)])
                    results.send("x", label=message.label, transaction=transaction)
            except ReceiveTimeout:
                break
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
