"""How messages end that never reach their receiver, in the words of the specification's classes."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.queue import AccessMode
from tests.transfer.letters import letters_in, order_ack
from tests.transfer.network import PEER, Computer, Network, Peer

TO_PLAIN = rf"DIRECT=TCP:{PEER}\private$\orders"
TO_LEDGER = rf"DIRECT=TCP:{PEER}\private$\ledger"

# MQMQ 2.2.20.1, MessageClass: literally, not by our names.
PURGED = 0x8001
REACH_QUEUE_TIMEOUT = 0x8002
RECEIVE_TIMEOUT_AT_SENDER = 0xC003


@pytest.fixture
def peer(network: Network) -> Peer:
    return network.peer()


@pytest.mark.parametrize(
    ("name", "transactional", "letters"),
    [(TO_PLAIN, False, "system$;deadletter"), (TO_LEDGER, True, "system$;deadxact")],
)
def test_what_an_operator_purges_on_its_way_out_is_a_dead_letter_of_that_class(
    network: Network, alpha: Computer, name: str, transactional: bool, letters: str
) -> None:
    network.down.add(PEER)
    alpha.send(name, b"one", transactional=transactional, journal_on_failure=True)
    opened = alpha.ok(api.OpenQueue(name, AccessMode.RECEIVE_ADMIN))
    assert alpha.ok_soon(api.Purge(opened.handle)) == api.Removed(1)
    assert alpha.bodies(letters) == [b"one"]
    assert alpha.classes(letters) == [PURGED]


def test_a_message_that_could_not_be_sent_in_time_is_a_dead_letter_of_that_class(
    network: Network, alpha: Computer
) -> None:
    network.down.add(PEER)
    alpha.send(TO_PLAIN, b"late", journal_on_failure=True, time_to_reach_queue_s=60)
    network.run(59_000)
    assert alpha.classes("system$;deadletter") == []
    network.run(10_000)
    assert alpha.classes("system$;deadletter") == [REACH_QUEUE_TIMEOUT]


@pytest.mark.parametrize("grace_s", [0, 100, 21_600])
def test_a_message_whose_end_nobody_tells_is_awaited_for_its_lifetime_and_the_grace(
    network: Network, peer: Peer, grace_s: int
) -> None:
    alpha = network.manager("ALPHA2", "127.0.0.12", final_ack_grace_s=grace_s)
    alpha.send(
        TO_LEDGER, b"silent", transactional=True, journal_on_failure=True, time_to_be_received_s=500
    )
    network.run()
    peer.accept_session()
    (message,) = letters_in(peer.take(), peer.identifier)
    peer.write(order_ack(message, alpha.identifier))
    network.run((500 + grace_s) * 1000 - 5_000)
    assert alpha.classes("system$;deadxact") == []
    assert alpha.outgoing()[0].unread_count == 1
    network.run(15_000)
    assert alpha.classes("system$;deadxact") == [RECEIVE_TIMEOUT_AT_SENDER]
    assert alpha.bodies("system$;deadxact") == [b"silent"]
