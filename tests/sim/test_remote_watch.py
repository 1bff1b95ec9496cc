"""Each promise to remote readers has a checker that notices when it is broken, here by hand."""

from __future__ import annotations

import pytest

from openmsmq.model.errors import InsufficientResources, TransactionSequence
from openmsmq.sim.checks import endings
from openmsmq.sim.checks.books import PURGING, READING
from openmsmq.sim.checks.remote_watch import PATIENCE_MS, Read, RemoteWatch
from openmsmq.sim.scenarios.scenario import PLAIN
from openmsmq.sim.violation import Violation
from tests.sim.test_checkers import Scene, broken

ONE, OTHER = (0, 1, 1), (0, 1, 2)
GONE = TransactionSequence.code


class Visits:
    """Two readers of one queue with two messages."""

    def __init__(self):
        self.scene = Scene()
        self.world = self.scene.world
        self.watch = self.world.books.remote = RemoteWatch(self.world)
        self.first, self.second = self.scene.sent(), self.scene.sent()
        self.keys = self.scene.put(self.scene.alpha, PLAIN, self.first, self.second)
        for message in (self.first, self.second):
            self.scene.books.acknowledged(message.group)
        self.passes(1)

    def passes(self, milliseconds):
        self.world.timeline.now_ms += milliseconds

    def begins(self, place=ONE, handle=b"1"):
        now_ms = self.world.timeline.now_ms
        read = Read(f"reader {place[2]}", self.scene.alpha, PLAIN, place, handle, now_ms)
        self.watch.begins(read)
        return read

    def gets(self, message, place=ONE):
        read = self.begins(place)
        self.watch.ends(read)
        return self.watch.given(read, self.scene.packet(message))

    def goes(self):
        """The first message is taken out."""
        self.scene.remove(self.scene.alpha, self.keys[0])

    def takes(self, lease):
        self.watch.speaks(lease, takes=True)
        self.goes()
        self.watch.was_taken(lease)


@pytest.fixture
def visits():
    return Visits()


def test_a_message_that_is_read_and_taken_breaks_nothing(visits):
    visits.takes(visits.gets(visits.first))
    visits.scene.read(visits.second, visits.keys[1])
    endings.check(visits.world)
    assert (visits.watch.taken_count, visits.watch.again_count) == (1, 0)


def test_a_message_that_two_readers_have_is_noticed(visits):
    visits.gets(visits.first)
    with broken("m1 was given away or removed while reader 1 has it"):
        visits.gets(visits.first, OTHER)


def test_a_message_that_a_local_reader_gets_from_a_remote_one_is_noticed(visits):
    visits.gets(visits.first)
    visits.scene.books.errand(visits.scene.alpha, PLAIN, READING)
    with broken("m1 was given away or removed while reader 1 has it"):
        visits.goes()


@pytest.mark.parametrize("event", ["lost", "closed", "late", "given back"])
def test_others_may_have_what_a_reader_does_not_have_any_more(visits, event):
    lease = visits.gets(visits.first)
    if event == "lost":
        visits.watch.line_lost(ONE)
    elif event == "closed":
        visits.watch.closes(b"1")
    elif event == "late":
        visits.passes(PATIENCE_MS)
    else:
        visits.watch.speaks(lease, takes=False)
    visits.gets(visits.first, OTHER)
    assert visits.watch.again_count == 0


def test_a_lock_that_is_gone_too_early_is_noticed(visits):
    lease = visits.gets(visits.first)
    visits.watch.speaks(lease, takes=True)
    with broken(f"reader 1 had m1 for itself, and is told {GONE:#010x}"):
        visits.watch.was_refused(lease, GONE)


def test_a_full_disk_lets_a_reader_have_what_it_has(visits):
    lease = visits.gets(visits.first)
    visits.watch.speaks(lease, takes=True)
    visits.watch.was_refused(lease, InsufficientResources.code)
    with broken("while reader 1 has it"):
        visits.gets(visits.first, OTHER)


def test_what_is_taken_and_lies_on_the_disk_is_noticed(visits):
    lease = visits.gets(visits.first)
    visits.watch.speaks(lease, takes=True)
    with broken("m1 was taken by reader 1 while ALPHA still had it on its disk"):
        visits.watch.was_taken(lease)


def test_what_nobody_takes_and_is_gone_is_noticed(visits):
    visits.gets(visits.first)
    visits.watch.line_lost(ONE)
    with broken("m1 was removed from .* and nobody had asked for that"):
        visits.goes()


def test_what_comes_after_it_was_removed_is_noticed(visits):
    visits.takes(visits.gets(visits.first))
    visits.passes(1)
    with broken("m1 was given to reader 2 after it had been removed"):
        visits.gets(visits.first, OTHER)


def test_a_message_comes_again_to_those_who_do_not_know_what_became_of_it(visits):
    lease = visits.gets(visits.first)
    visits.watch.speaks(lease, takes=True)
    visits.watch.line_lost(ONE)
    visits.takes(visits.gets(visits.first, OTHER))
    assert visits.watch.again_count == 1


def test_a_message_that_is_taken_twice_is_noticed(visits):
    one = visits.gets(visits.first)
    visits.watch.speaks(one, takes=True)
    visits.watch.line_lost(ONE)
    other = visits.gets(visits.first, OTHER)
    visits.takes(other)
    with broken("m1 was received 2 times"):
        visits.watch.was_taken(one)


def test_who_reads_alone_gets_the_first_message(visits):
    read = visits.begins()
    visits.watch.require_first(read, visits.scene.packet(visits.first))
    with broken("reader 1 was given m2, and m1 lies before it"):
        visits.watch.require_first(read, visits.scene.packet(visits.second))


def test_who_does_not_read_alone_may_get_another_one(visits):
    read, _ = visits.begins(), visits.begins(OTHER)
    visits.watch.require_first(read, visits.scene.packet(visits.second))


def purges(visits, *gone):
    """Have a reader hear that it has purged the queue; some of it is gone then."""
    visits.passes(1)
    errand = visits.scene.books.errand(visits.scene.alpha, PLAIN, PURGING)
    visits.scene.remove(visits.scene.alpha, *gone)
    visits.scene.books.errand_ends(errand, visits.scene.alpha)
    visits.watch.purged(errand, visits.scene.alpha, PLAIN)


def test_a_message_that_lies_where_a_reader_has_purged_is_noticed(visits):
    with broken("was purged, and still has m1 on its disk"):
        purges(visits)


def test_what_a_reader_has_goes_when_it_gives_back_what_was_purged_meanwhile(visits):
    lease = visits.gets(visits.first)
    purges(visits, visits.keys[1])
    visits.watch.speaks(lease, takes=False)
    visits.goes()
    endings.check(visits.world)


def test_what_was_purged_while_a_reader_had_it_does_not_come_again(visits):
    lease = visits.gets(visits.first)
    purges(visits, visits.keys[1])
    visits.watch.speaks(lease, takes=False)
    visits.passes(1)
    with broken("m1 was given to a reader, though it had been purged"):
        visits.gets(visits.first, OTHER)


def test_a_message_of_another_queue_is_noticed(visits):
    read = visits.begins()
    read.queue = "private$\\other"
    with pytest.raises(Violation, match="m1 was given to reader 1 from"):
        visits.watch.heard(read, visits.scene.packet(visits.first))
