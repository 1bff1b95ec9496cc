"""Three queue managers in a row: the middle one passes on, and the ends answer for the messages."""

from __future__ import annotations

import openmsmq
from tests.runtime.computers import (
    Computer,
    explanations,
    neighbours,
    running,
    wait_for,
    waiting_count,
)

LEDGER, ORDERS = r"private$\ledger", r"private$\orders"
JOURNAL = "system$;journal"
WITHIN_S = 90


def lead(computer: Computer, *hops: tuple[Computer, Computer]) -> None:
    """Say where the messages of a computer go first: for each of these, to that one."""
    lines = [f'"{target.identifier}" = "{hop.address}"' for target, hop in hops]
    computer.configure("\n".join(["[next_hops]", *lines]))


def bodies_in(queue: openmsmq.Queue) -> list[bytes]:
    return [message.body_bytes for message in queue.browse()]


def test_messages_and_their_acknowledgments_go_through_the_one_in_the_middle(tmp_path):
    alpha, middle, omega = neighbours(tmp_path, "ALPHA", "MIDDLE", "OMEGA")
    with running(alpha, omega), omega.connect() as manager:
        manager.create_queue(LEDGER, transactional=True)
        manager.create_queue(ORDERS)
        # Such names say which queue manager is meant, not where it is.
        ledger, orders = (manager.names(path).private_name for path in (LEDGER, ORDERS))
    lead(alpha, (omega, middle))
    lead(middle, (alpha, alpha), (omega, omega))
    lead(omega, (alpha, middle))
    bodies = [b"%d" % number for number in range(30)]
    with (
        running(alpha, middle),
        alpha.connect() as source,
        middle.connect() as between,
    ):
        for start in range(0, 30, 10):
            with source.transaction() as transaction:
                source.queue(ledger).send_many(
                    [
                        openmsmq.OutgoingMessage(body=body, journal_on_success=True)
                        for body in bodies[start : start + 10]
                    ],
                    transaction=transaction,
                )
        source.queue(orders).send(b"plain", recoverable=True, journal_on_success=True)

        # The one in the middle has them all; only what has no order to keep is off our hands.
        wait_for(
            lambda: all(
                waiting_count(manager, name) == count
                for manager, name, count in (
                    (source, ledger, 30),
                    (between, ledger, 30),
                    (source, orders, 0),
                    (between, orders, 1),
                )
            ),
            otherwise=lambda: explanations(source, between),
        )
        assert source.outgoing_queue(ledger).address == middle.address
        assert source.outgoing_queue(ledger).unacknowledged_count == 30
        assert bodies_in(source.queue(JOURNAL)) == [b"plain"]

        # The destination says that they came in their order, and then that they were received.
        with running(omega), omega.connect() as target:
            wait_for(
                lambda: source.outgoing_queue(ledger).message_count == 0,
                otherwise=lambda: explanations(source, between, target),
            )
            assert source.outgoing_queue(ledger).unread_count == 30
            assert bodies_in(source.queue(JOURNAL)) == [b"plain"]
            received = [target.queue(LEDGER).receive(timeout=WITHIN_S) for _ in bodies]
            assert [message.body_bytes for message in received] == bodies
            assert {message.hop_count for message in received} == {1}
            assert {str(message.source_qm) for message in received} == {alpha.identifier}
            assert target.queue(ORDERS).receive(timeout=WITHIN_S).body_bytes == b"plain"
            wait_for(
                lambda: source.outgoing_queue(ledger).unread_count == 0,
                otherwise=lambda: explanations(source, between, target),
            )
            assert bodies_in(source.queue(JOURNAL)) == [b"plain", *bodies]
            assert {found.address for found in target.outgoing()} == {middle.address}
