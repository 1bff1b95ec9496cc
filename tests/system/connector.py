"""A connector: it takes messages to the system of the manufacturer, and brings the answers.

Usage: connector.py QUEUE_MANAGER CONNECTOR HOST PORT

Names are translated, and nothing else is: the queue `MANUFACTURER\\status` is the mailbox `STATUS`
there, and `responses@CUSTOMER` there is the queue `CUSTOMER\\private$\\responses` here.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from typing import TextIO

import openmsmq


def forward(manager: openmsmq.QueueManager, connector: str, letters: TextIO) -> None:
    """Take each message out of the connector queue when the other system has it.

    If the connector dies between the two, the letter comes again, with the same number.
    """
    queue = manager.queue(f"CONNECTOR={connector};XACTONLY")
    while True:
        with manager.transaction() as transaction:
            request = queue.receive(transaction=transaction)
            # The directory says which queue is meant: `MANUFACTURER\status`.
            _, _, mailbox = manager.names(str(request.destination)).path_name.rpartition("\\")
            _, _, response = str(request.response_queue).partition(":")
            computer, _, name = response.split("\\")
            letter = {
                "to": mailbox.upper(),
                "from": f"{name}@{computer}",
                "text": request.body,
                "number": str(request.id),
            }
            letters.write(json.dumps(letter) + "\n")
            letters.flush()


def bring(manager: openmsmq.QueueManager, letters: TextIO) -> None:
    """Send each answer to the queue that its address means."""
    for line in letters:
        letter = json.loads(line)
        name, _, computer = letter["to"].partition("@")
        manager.queue(rf"{computer}\private$\{name}").send(
            letter["text"],
            correlation_id=openmsmq.MessageId.parse(letter["about"]),
            transaction=openmsmq.SINGLE_MESSAGE,
        )


def main(where: str, connector: str, host: str, port: int) -> None:
    """Work in both directions until somebody ends it."""
    with (
        openmsmq.connect(where) as manager,
        socket.create_connection((host, port)) as connection,
        connection.makefile("r", encoding="utf-8") as coming,
        connection.makefile("w", encoding="utf-8") as going,
    ):
        threading.Thread(target=bring, args=(manager, coming), daemon=True).start()
        forward(manager, connector, going)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
