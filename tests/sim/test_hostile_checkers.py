"""Each promise beside an adversary has a checker that notices when it is broken by hand."""

from __future__ import annotations

import pytest

from openmsmq.manager.notices import Notice, NoticeKind
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.queue import QueueKind, QueueProperties, QueueRole
from openmsmq.sim.checks.facts import Kind
from openmsmq.sim.hostile.forgeries import Wanted
from openmsmq.sim.runner import make_world
from openmsmq.sim.scenarios.scenario import ADMIN, CLOSED, CLOSED_TRANSACTIONAL, PLAIN, Options
from openmsmq.sim.violation import Violation
from openmsmq.storage import records
from openmsmq.storage.port import Batch
from openmsmq.storage.records import EntryFacts, QueueRecord
from openmsmq.wire.headers.queue_names import DirectName

NOWHERE = "direct=tcp:10.99.0.1\\private$\\plain"
TO_BRAVO = "direct=os:bravo\\private$\\plain"
QUEUES = {PLAIN: 16, ADMIN: 17, CLOSED: 18, CLOSED_TRANSACTIONAL: 19, NOWHERE: 20, TO_BRAVO: 21}
LATER_S = 1_900_000_000


class Scene:
    """Two nodes that never start, an adversary, and disks that are written by hand."""

    def __init__(self):
        self.world = make_world(0, Options(hostile="known", managers=2, faults=False))
        self.alpha, self.bravo = self.world.nodes
        self.adversary = self.world.adversary
        self.watch = self.world.books.hostile
        self._lookup = 0
        for path, number in QUEUES.items():
            self.add_queue(number, path)

    def add_queue(self, number, path):
        properties = QueueProperties(identifier=NIL_GUID, path_name=path, kind=QueueKind.PRIVATE)
        role = QueueRole.OUTGOING if path.startswith("direct=") else QueueRole.APPLICATION
        value = records.encode_record(QueueRecord(properties, role))
        self.store([(records.queue_key(number), value)])

    def store(self, changes):
        self.world.books.disks.stored(self.alpha, Batch(changes))

    def put(self, queue, packet, deadline_s=LATER_S):
        self._lookup += 1
        value = records.encode_entry(EntryFacts(0, deadline_s), packet)
        self.store([(records.entry_key(QUEUES[queue], self._lookup), value)])

    def forged(self, source, **wishes):
        destination = DirectName("OS:ALPHA\\private$\\plain")
        return self.adversary.forge(Wanted(source=source, destination=destination, **wishes))


@pytest.fixture
def scene():
    return Scene()


@pytest.mark.parametrize("queue", [CLOSED, CLOSED_TRANSACTIONAL])
def test_what_comes_into_a_closed_queue_is_noticed(scene, queue):
    with pytest.raises(Violation, match="takes signed messages only"):
        scene.put(queue, scene.forged(scene.adversary.identifier))


@pytest.mark.parametrize("queue", [PLAIN, ADMIN])
def test_a_message_in_the_name_of_an_honest_node_is_noticed(scene, queue):
    with pytest.raises(Violation, match="in the name of BRAVO"):
        scene.put(queue, scene.forged(scene.bravo.identifier))


def test_what_the_adversary_sends_in_its_own_name_may_come_in(scene):
    scene.put(PLAIN, scene.forged(scene.adversary.identifier))


def test_a_report_that_shows_a_forgery_is_none(scene):
    scene.forged(scene.bravo.identifier)
    number = len(scene.adversary.forgeries)
    report = scene.forged(scene.alpha.identifier, message_class=0x8000)
    report = report.replace(b"<x%06d>" % (number + 1), b"<x%06d>" % number)
    scene.put(PLAIN, report)


def test_more_than_the_quota_is_noticed(scene):
    packet = scene.forged(scene.adversary.identifier, size_bytes=30_000)
    fitting = scene.alpha.config.quota_kb * 1024 // len(packet)
    for _ in range(fitting + 1):
        scene.put(PLAIN, packet)
    with pytest.raises(Violation, match=r"ALPHA keeps \d+ bytes of messages"):
        scene.put(PLAIN, packet)


def test_too_many_sequences_of_others_are_noticed(scene):
    fitting = scene.alpha.config.quota_kb * 1024 // 8 // 233
    keys = [records.incoming_key(bytes(16), number.to_bytes(16, "big")) for number in range(9999)]
    for key in keys[:fitting]:
        scene.store([(key, bytes(200))])
    with pytest.raises(Violation, match="sequences of others"):
        scene.store([(key, bytes(200)) for key in keys[fitting : fitting + 2]])


def test_sequences_that_are_forgotten_make_room(scene):
    fitting = scene.alpha.config.quota_kb * 1024 // 8 // 233
    keys = [records.incoming_key(bytes(16), number.to_bytes(16, "big")) for number in range(9999)]
    for new, old in zip(keys[fitting : 2 * fitting], keys, strict=False):
        scene.store([(old, bytes(200))])
        scene.store([(old, None), (new, bytes(200))])


def test_too_many_outgoing_queues_that_lead_nowhere_are_noticed(scene):
    allowed = 100 * scene.adversary.scenario.hideouts + 50
    for number in range(allowed - 1):
        scene.add_queue(1000 + number, f"direct=tcp:10.99.1.{number}\\x")
    with pytest.raises(Violation, match="outgoing queues that lead nowhere"):
        scene.add_queue(999, "direct=os:nowhere\\x")


def test_a_report_to_nowhere_that_stays_for_ever_is_noticed(scene):
    report = scene.forged(scene.alpha.identifier, message_class=0x8000)
    scene.put(NOWHERE, report, LATER_S)
    with pytest.raises(Violation, match="for ever, because the adversary asked for it"):
        scene.put(NOWHERE, report, 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("path", "nowhere"),
    [
        (NOWHERE, True),
        (TO_BRAVO, False),
        ("direct=tcp:10.0.0.2\\private$\\plain", False),
        ("direct=tcp:10.0.0.22\\private$\\plain", True),
        ("public=00000000-0000-0000-0000-000000000001", False),
    ],
)
def test_a_queue_leads_nowhere_if_it_leads_to_no_honest_node(scene, path, nowhere):
    scene.add_queue(500, path)
    shelf = scene.world.books.disks.watches[scene.alpha.index].shelves[500]
    assert scene.watch.leads_nowhere(shelf) is nowhere


def test_a_queue_of_a_queue_manager_leads_somewhere_if_that_one_is_there(scene):
    watch = scene.world.books.disks.watches[scene.alpha.index]
    managers = {501: (scene.bravo.identifier, False), 502: (Guid(bytes(16)), True)}
    for number, (manager, nowhere) in managers.items():
        scene.add_queue(number, f"private={manager}\\10")
        assert scene.watch.leads_nowhere(watch.shelves[number]) is nowhere


@pytest.mark.parametrize(
    ("mode", "kind", "reason", "excused"),
    [
        ("plain", Kind.EXPRESS, "express memory", True),
        ("plain", Kind.EXPRESS, "queue quota", False),
        ("plain", Kind.RECOVERABLE, "express memory", False),
        ("known", Kind.EXPRESS, "express memory", False),
    ],
)
def test_only_an_unknown_sender_of_an_express_message_suffers_from_strangers(
    mode, kind, reason, excused
):
    world = make_world(0, Options(hostile=mode, managers=2, faults=False))
    alpha, bravo = world.nodes
    message = world.books.new_message(kind, world.books.new_group(bravo), alpha, PLAIN)
    assert not world.books.may_be_refused(message)
    world.books.told(alpha, Notice(NoticeKind.MESSAGE_DROPPED, (("reason", reason),)))
    assert world.books.may_be_refused(message) is excused
