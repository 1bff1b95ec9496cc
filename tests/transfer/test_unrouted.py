"""Routing servers whose copy of the directory is behind: what they do with messages of others."""

from __future__ import annotations

import random

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.directory.limits import (
    UNROUTED_MAX_BYTES,
    UNROUTED_MAX_COUNT,
    UNROUTED_PATIENCE_S,
    UNROUTED_STRANGERS_FACTOR,
)
from openmsmq.manager.directory.service import HINT_PAUSE_MS
from openmsmq.manager.messages.housekeeping import SLICE_ROWS
from openmsmq.manager.notices import NoticeKind
from openmsmq.model.identity import Guid
from openmsmq.model.limits import DIRECTORY_PROBE_S
from openmsmq.model.message import MessageClass
from openmsmq.model.names import PrivateFormatName
from tests.transfer.conftest import LEDGER, ORDERS
from tests.transfer.directories import COPY, ORIGINAL, PATIENT_COPY, image, joined
from tests.transfer.letters import ARRIVAL_NACK
from tests.transfer.network import ALPHA, BETA, GAMMA, NO_DIRECTORY, Computer, Network

GATE, CLERK, LATE, STRANGER = BETA, GAMMA, "127.0.0.5", "127.0.0.6"
PATIENCE_MS = UNROUTED_PATIENCE_S * 1000
MIB = 1024 * 1024

LATE_ID = Network().manager("LATE", LATE).identifier
"""Who will join: a computer of a test has the same identifier in each network."""
NOBODIES = [Guid(number.to_bytes(16, "big")) for number in range(1, UNROUTED_MAX_COUNT + 20)]
"""Queue managers that never were."""
OVER_THE_GATE = {str(manager): (GATE,) for manager in (LATE_ID, *NOBODIES)}
BAD_DESTINATION = MessageClass.NACK_BAD_DESTINATION_QUEUE


@pytest.fixture
def gate(network: Network, office: Computer) -> Computer:
    """A computer that passes messages on, and learns nothing of the directory by itself."""
    del office
    return joined(network, "GATE", GATE, msgspec.structs.replace(PATIENT_COPY, routing_server=True))


@pytest.fixture
def clerk(network: Network, gate: Computer) -> Computer:
    """One whom the gate knows, and who sends over the gate what is for those it does not know."""
    computer = network.manager("CLERK", CLERK, COPY, next_hops=OVER_THE_GATE)
    network.run(HINT_PAUSE_MS)
    gate.ok_soon(api.RefreshDirectory())
    assert computer.identifier in image(gate).managers
    return computer


@pytest.fixture
def stranger(network: Network) -> Computer:
    """One whom nobody knows."""
    return network.manager("STRANGER", STRANGER, NO_DIRECTORY, next_hops=OVER_THE_GATE)


def join_late(network: Network, gate: Computer) -> Computer:
    """Let one more join the enterprise; the gate does not hear of it."""
    computer = joined(network, "LATE", LATE).with_queues(ORDERS, LEDGER)
    assert computer.identifier == LATE_ID
    assert LATE_ID not in image(gate).managers
    return computer


def name_of(computer: Computer, path: str) -> str:
    name: str = computer.ok(api.GetNames(path)).private_name
    return name


def nobody(number: int = 0) -> str:
    return str(PrivateFormatName(NOBODIES[number], 4711))


def waiting(gate: Computer) -> int:
    """Count the messages that wait at the gate for queue managers without a way."""
    queues = [each for each in gate.outgoing() if each.state == "NEED VALIDATION"]
    return sum(queue.message_count for queue in queues)


def dropped(gate: Computer) -> int:
    """Count the messages that the operator of the gate was told of as dropped."""
    counts = gate.manager.notices.counts
    return counts.get((NoticeKind.MESSAGE_DROPPED, "not-passed-on"), 0)


@pytest.mark.parametrize("transactional", [False, True])
def test_a_message_for_one_who_has_just_joined_arrives(
    network: Network, gate: Computer, clerk: Computer, transactional: bool
) -> None:
    late = join_late(network, gate)
    path = LEDGER if transactional else ORDERS
    clerk.send(name_of(late, path), b"1", b"2", transactional=transactional)
    network.run(2 * HINT_PAUSE_MS)
    assert late.bodies(path) == [b"1", b"2"]
    assert clerk.outgoing(name_of(late, path))[0].message_count == 0
    assert not gate.notices


def test_a_message_for_a_public_queue_of_one_who_has_just_joined_arrives(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    late = join_late(network, gate)
    late.ok_soon(api.CreateQueue(r".\news"))
    clerk.ok_soon(api.RefreshDirectory())
    clerk.send(r"LATE\news", b"1")
    network.run(2 * HINT_PAUSE_MS)
    assert late.bodies(r".\news") == [b"1"]


def test_it_waits_while_the_directory_cannot_be_asked_and_arrives_after_that(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    late = join_late(network, gate)
    network.directory, original = None, network.directory
    clerk.send(name_of(late, ORDERS), b"1")
    network.run(5 * PATIENCE_MS)
    assert waiting(gate) == 1
    network.directory = original
    network.run(DIRECTORY_PROBE_S * 1000 + 2 * HINT_PAUSE_MS)
    assert late.bodies(ORDERS) == [b"1"]
    assert not gate.notices


def test_it_outlives_the_gate_that_has_it(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    late = join_late(network, gate)
    network.directory, original = None, network.directory
    clerk.send(name_of(late, ORDERS), b"1")
    network.run(HINT_PAUSE_MS)
    assert waiting(gate) == 1
    network.directory = original
    gate.crash()
    network.run(2 * HINT_PAUSE_MS)
    assert late.bodies(ORDERS) == [b"1"]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_before_its_queue_manager_joins_it_arrives(
    network: Network, gate: Computer, clerk: Computer, seed: int
) -> None:
    """The gate crashes, the directory is away, lines are cut; nothing that was sent is lost."""
    rng = random.Random(seed)
    original = network.directory
    known = Network().manager("LATE", LATE).with_queues(ORDERS, LEDGER)
    sent: dict[str, list[bytes]] = {ORDERS: [], LEDGER: []}

    def send() -> None:
        path = rng.choice((ORDERS, LEDGER))
        body = b"%d" % len(sent[path])
        clerk.send(name_of(known, path), body, transactional=path == LEDGER)
        sent[path].append(body)

    def lose_or_find_the_directory() -> None:
        network.directory = rng.choice((None, original))

    troubles = (send, send, send, gate.crash, lambda: network.cut(GATE), lose_or_find_the_directory)
    while network.now.ticks_ms < PATIENCE_MS:
        rng.choice(troubles)()
        network.run(rng.randrange(1, 5_000))
    network.directory = original
    late = network.manager("LATE", LATE, COPY).with_queues(ORDERS, LEDGER)
    network.run(10 * PATIENCE_MS)
    assert late.bodies(LEDGER) == sent[LEDGER]
    assert sorted(set(late.bodies(ORDERS))) == sorted(sent[ORDERS])
    assert dropped(gate) == 0


def test_its_own_time_ends_while_it_waits(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    network.directory = None
    clerk.send(nobody(), b"1", time_to_reach_queue_s=900, journal_on_failure=True)
    network.run(800_000)
    assert waiting(gate) == 1
    network.run(600_000)
    assert waiting(gate) == 0
    assert gate.classes(r"system$;deadletter") == [MessageClass.NACK_REACH_QUEUE_TIMEOUT]


def test_what_the_directory_does_not_know_for_good_is_refused_and_leaves_what_it_asked_for(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    clerk.create(r"private$\reports")
    admin = {"acknowledge": ARRIVAL_NACK, "admin_queue": rf"TCP:{CLERK}\private$\reports"}
    clerk.send(nobody(), b"1", journal_on_failure=True, **admin)
    clerk.send(nobody(), b"2")
    network.run(PATIENCE_MS - HINT_PAUSE_MS)
    assert waiting(gate) == 2
    network.run(3 * HINT_PAUSE_MS)
    assert waiting(gate) == 0
    assert gate.classes(r"system$;deadletter") == [BAD_DESTINATION]
    assert gate.bodies(r"system$;deadletter") == [b"1"]
    # What is not there is told only to those who may know (C-88).
    assert clerk.classes(r"private$\reports") == []
    assert dropped(gate) == 2
    assert dict(gate.notices[0].facts) == {"reason": "not-passed-on", "manager": str(NOBODIES[0])}


def test_who_may_know_is_told_that_it_is_refused(network: Network, office: Computer) -> None:
    del office
    routing = msgspec.structs.replace(PATIENT_COPY, routing_server=True)
    gate = network.manager("GATE", GATE, routing, permit_insecure_nacks=True)
    clerk = network.manager("CLERK", CLERK, COPY, next_hops=OVER_THE_GATE)
    network.run(HINT_PAUSE_MS)
    gate.ok_soon(api.RefreshDirectory())
    clerk.create(r"private$\reports")
    admin = {"acknowledge": ARRIVAL_NACK, "admin_queue": rf"TCP:{CLERK}\private$\reports"}
    clerk.send(nobody(), b"1", **admin)
    network.run(PATIENCE_MS + 2 * HINT_PAUSE_MS)
    assert clerk.classes(r"private$\reports") == [BAD_DESTINATION]


def test_the_source_of_a_transactional_one_keeps_the_dead_letter(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    clerk.send(nobody(), b"1", transactional=True, journal_on_failure=True)
    network.run(PATIENCE_MS + 3 * HINT_PAUSE_MS)
    assert clerk.classes(r"system$;deadxact") == [BAD_DESTINATION]
    assert gate.bodies(r"system$;deadxact") == []


def test_what_comes_after_the_last_question_has_its_own_time(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    clerk.send(nobody(), b"1")
    network.run(PATIENCE_MS - HINT_PAUSE_MS)
    network.directory, original = None, network.directory
    network.run(3 * HINT_PAUSE_MS)
    clerk.send(nobody(), b"2")
    network.run(HINT_PAUSE_MS)
    network.directory = original
    network.run(DIRECTORY_PROBE_S * 1000 - 10 * HINT_PAUSE_MS)
    gate.ok_soon(api.RefreshDirectory())
    assert waiting(gate) == 1
    network.run(2 * PATIENCE_MS)
    assert waiting(gate) == 0
    assert dropped(gate) == 2


def test_what_is_refused_in_several_slices_is_refused_altogether(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    count = SLICE_ROWS + 100
    clerk.send(nobody(), *(b"%d" % number for number in range(count)))
    network.run(PATIENCE_MS - HINT_PAUSE_MS)
    assert waiting(gate) == count
    network.run(3 * HINT_PAUSE_MS)
    assert waiting(gate) == 0
    assert dropped(gate) == count


def test_our_own_messages_to_the_same_queue_wait_on(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    gate.send(nobody(), b"own")
    clerk.send(nobody(), b"1")
    network.run(PATIENCE_MS + 3 * HINT_PAUSE_MS)
    assert dropped(gate) == 1
    assert waiting(gate) == 1


def test_an_express_message_is_dropped_and_counted_and_the_next_one_arrives(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    late = join_late(network, gate)
    clerk.send(name_of(late, ORDERS), b"1", recoverable=False)
    network.run(2 * HINT_PAUSE_MS)
    assert dropped(gate) == 1
    clerk.send(name_of(late, ORDERS), b"2", recoverable=False)
    network.run()
    assert late.bodies(ORDERS) == [b"2"]


def test_what_may_wait_says_nothing_of_what_comes_with_it(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    name = nobody()
    clerk.send(name, b"1")
    clerk.send(name, b"2", recoverable=False)
    network.run()
    assert (waiting(gate), dropped(gate)) == (1, 1)


def test_for_so_many_unknown_queue_managers_messages_wait(
    network: Network, gate: Computer, clerk: Computer
) -> None:
    before = network.directory_questions
    for number in range(len(NOBODIES)):
        clerk.send(nobody(number), b"1", journal_on_failure=True)
    network.run()
    assert waiting(gate) == UNROUTED_MAX_COUNT
    over = len(NOBODIES) - UNROUTED_MAX_COUNT
    assert dropped(gate) == over
    assert len(gate.bodies(r"system$;deadletter")) == over
    # One more for a queue that waits already has its place.
    clerk.send(nobody(0), b"2")
    network.run(PATIENCE_MS // 2)
    assert waiting(gate) == UNROUTED_MAX_COUNT + 1
    # However many they are, one question is enough; the clerk asks for himself.
    assert network.directory_questions - before <= 3
    network.run(2 * PATIENCE_MS)
    assert waiting(gate) == 0


def test_so_many_bytes_wait(network: Network, gate: Computer, clerk: Computer) -> None:
    size = 3 * MIB
    fitting = UNROUTED_MAX_BYTES // size
    for number in range(fitting + 2):
        clerk.send(nobody(number), bytes(size))
        network.run()
    assert waiting(gate) == fitting
    assert dropped(gate) == 2


def test_strangers_have_a_small_share_and_leave_the_rest_to_those_who_are_known(
    network: Network, gate: Computer, clerk: Computer, stranger: Computer
) -> None:
    share = UNROUTED_MAX_COUNT // UNROUTED_STRANGERS_FACTOR
    for number in range(share + 10):
        stranger.send(nobody(number), b"1", journal_on_failure=True)
    network.run()
    assert waiting(gate) == share
    assert dropped(gate) == 10
    assert gate.bodies(r"system$;deadletter") == []
    clerk.send(nobody(share + 11), b"from the clerk", journal_on_failure=True)
    network.run()
    assert waiting(gate) == share + 1
    # What they ask to be kept would fill the disk.
    network.run(PATIENCE_MS + 3 * HINT_PAUSE_MS)
    assert waiting(gate) == 0
    assert gate.bodies(r"system$;deadletter") == [b"from the clerk"]


def test_who_has_no_address_in_the_directory_is_known_by_his_word(
    network: Network, gate: Computer
) -> None:
    """Active Directory has no place for addresses."""
    nowhere = msgspec.structs.replace(COPY, publishes_addresses=False)
    clerk = network.manager("CLERK", CLERK, nowhere, next_hops=OVER_THE_GATE)
    network.run(HINT_PAUSE_MS)
    gate.ok_soon(api.RefreshDirectory())
    assert image(gate).managers[clerk.identifier].addresses == ()
    count = UNROUTED_MAX_COUNT // UNROUTED_STRANGERS_FACTOR + 1
    for number in range(count):
        clerk.send(nobody(number), b"1")
    network.run()
    assert waiting(gate) == count


def test_a_stranger_cannot_use_up_the_bytes_of_those_who_are_known(
    network: Network, gate: Computer, clerk: Computer, stranger: Computer
) -> None:
    clerk.send(nobody(), b"1")
    network.run()
    size = MIB
    share = UNROUTED_MAX_BYTES // UNROUTED_STRANGERS_FACTOR
    for _ in range(share // size + 3):
        stranger.send(nobody(), bytes(size))
        network.run()
    assert waiting(gate) <= 1 + share // size
    assert dropped(gate) >= 3


def test_who_has_joined_itself_a_moment_ago_is_no_stranger_for_long(
    network: Network, gate: Computer
) -> None:
    """Neither sender nor receiver is in the copy of the gate."""
    late = join_late(network, gate)
    newcomer = network.manager("NEWCOMER", STRANGER, COPY, next_hops=OVER_THE_GATE)
    network.run(HINT_PAUSE_MS)
    assert newcomer.identifier in newcomer.manager.directory.copy.image.managers
    assert newcomer.identifier not in image(gate).managers
    newcomer.send(name_of(late, ORDERS), b"1")
    network.run(2 * HINT_PAUSE_MS)
    assert late.bodies(ORDERS) == [b"1"]


def test_who_has_the_original_refuses_at_once(network: Network) -> None:
    routing = msgspec.structs.replace(ORIGINAL, routing_server=True)
    office = network.directory = network.manager("OFFICE", ALPHA, routing)
    over_the_office = {str(NOBODIES[0]): (office.address,)}
    clerk = network.manager("CLERK", CLERK, COPY, next_hops=over_the_office)
    network.run(HINT_PAUSE_MS)
    clerk.send(nobody(), b"1", journal_on_failure=True)
    network.run()
    assert waiting(office) == 0
    assert office.classes(r"system$;deadletter") == [BAD_DESTINATION]
