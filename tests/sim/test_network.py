"""The simulated network keeps what TCP promises, and nothing more."""

from __future__ import annotations

import random

import pytest

from openmsmq.model.clock import Instant
from openmsmq.model.queue import ConnectionStatus
from openmsmq.sim.clock import Clock, Timeline
from openmsmq.sim.network import Network
from openmsmq.sim.scenarios.scenario import NetworkHabits
from openmsmq.sim.trace import Trace


class Listener:
    """A node that writes down what it hears."""

    is_watched = True

    def __init__(self, world, index):
        self.world = world
        self.index = index
        self.name = f"N{index}"
        self.address = f"10.0.0.{index + 1}"
        self.boot = 1
        self.up = True
        self.clock = Clock(world.timeline)
        self.heard = []
        self._last_session = 0

    def later(self, delay_ms, action, *arguments):
        self.world.timeline.after(delay_ms, action, *arguments)

    def accept(self, address, proven=""):
        self._last_session += 2
        shown = (proven,) if proven else ()
        self.heard.append(("accepted", self._last_session, address, *shown))
        return self._last_session

    def input(self, name, *arguments, peer=""):
        facts = tuple(each for each in arguments if not isinstance(each, Instant))
        shown = (peer,) if peer else ()
        self.heard.append((name, *facts, *shown))

    def datagram(self, address, port, data, *, is_answer):
        self.heard.append(("datagram", address, port, data, is_answer))

    @property
    def data(self):
        return b"".join(what[2] for what in self.heard if what[0] == "session_data")

    def names(self):
        return [what[0] for what in self.heard]


class Wire:
    """Nobody looks at the bytes."""

    def leaves(self, _flow, _data):
        return []


class Town:
    """A timeline, a network and two listeners."""

    def __init__(self, seed=0, pieces=0.0, loss=0.0):
        self.timeline = Timeline()
        self.trace = Trace(self.timeline, wanted=False)
        self.enterprise = None
        self.shows_certificates = False
        self.books = type("Books", (), {"wire": Wire()})()
        habits = NetworkHabits(1, 50, pieces, loss)
        self.network = Network(self, random.Random(seed), habits)
        self.one, self.other = Listener(self, 0), Listener(self, 1)
        self.network.join(self.one)
        self.network.join(self.other)

    def run(self, for_ms=10_000_000):
        limit_ms = self.timeline.now_ms + for_ms
        while self.timeline.next_ms is not None and self.timeline.next_ms <= limit_ms:
            self.timeline.step()

    def connect(self):
        self.network.connect(self.one, 1, self.other.address)
        self.run()
        self.one.heard.clear()
        self.other.heard.clear()
        (connection,) = self.network.open_connections
        return connection


def test_a_connection_is_accepted_and_heard_of():
    town = Town()
    town.network.connect(town.one, 1, "10.0.0.2")
    town.run()
    assert town.other.heard == [("accepted", 2, "10.0.0.1")]
    assert town.one.heard == [("session_connected", 1)]


@pytest.mark.parametrize(
    ("caller_is_hostile", "listener_is_hostile", "accepted", "connected"),
    [(False, False, ("N0",), ("N1",)), (True, False, (), ()), (False, True, (), ())],
)
def test_certificates_are_shown_among_the_honest_only(
    caller_is_hostile, listener_is_hostile, accepted, connected
):
    town = Town()
    town.shows_certificates = True
    town.one.is_watched = not caller_is_hostile
    town.other.is_watched = not listener_is_hostile
    town.network.connect(town.one, 1, "10.0.0.2")
    town.run()
    assert town.other.heard == [("accepted", 2, "10.0.0.1", *accepted)]
    assert town.one.heard == [("session_connected", 1, *connected)]


@pytest.mark.parametrize("wrong", ["nobody", "down", "refuses"])
def test_a_connection_is_refused_where_nobody_listens(wrong):
    town = Town()
    if wrong == "down":
        town.other.up = False
    elif wrong == "refuses":
        town.network.refuse(town.other, until_ms=5)
    town.network.connect(town.one, 1, "10.0.0.9" if wrong == "nobody" else "10.0.0.2")
    town.run()
    assert town.one.heard == [("session_failed", 1, ConnectionStatus.SOCKET_CONNECT_FAILURE)]
    assert town.other.heard == []


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_in_order_whatever_the_pieces(seed):
    town = Town(seed, pieces=1.0)
    town.connect()
    sent = [random.Random(seed + i).randbytes(1 + 37 * i) for i in range(12)]
    for data in sent:
        town.network.send(town.one, 1, data)
        town.run(for_ms=seed)
    town.run()
    assert town.other.data == b"".join(sent)
    assert len(town.other.heard) > len(sent)


def test_a_cut_is_heard_by_both_sides_and_nothing_after_it():
    town = Town()
    connection = town.connect()
    town.network.cut(connection)
    town.run()
    town.network.send(town.one, 1, b"lost")
    town.run()
    assert town.one.names() == ["session_lost"]
    assert town.other.names() == ["session_lost"]


@pytest.mark.parametrize("seed", range(30))
def test_a_half_open_connection_is_heard_of_by_one_side_first(seed):
    town = Town(seed)
    connection = town.connect()
    town.network.half_open(connection)
    town.run(for_ms=500)
    assert sorted([town.one.names(), town.other.names()]) == [[], ["session_lost"]]
    town.run()
    assert town.one.names() == town.other.names() == ["session_lost"]


def test_bytes_of_a_half_open_connection_come_late_and_in_order():
    late = 0
    for seed in range(40):
        town = Town(seed)
        connection = town.connect()
        town.network.send(town.one, 1, b"first ")
        town.network.send(town.one, 1, b"second")
        town.network.half_open(connection)
        late += connection.late_until_ms > 1_000
        town.run()
        assert b"first second".startswith(town.other.data)
        assert town.other.names()[-1] == "session_lost"
    assert late > 5


def test_what_is_sent_into_a_partition_comes_when_it_is_over():
    town = Town()
    town.connect()
    now_ms = town.timeline.now_ms
    town.network.part(town.one, town.other, now_ms + 5_000)
    town.network.send(town.one, 1, b"late")
    town.run(for_ms=4_900)
    assert town.other.data == b""
    town.run()
    assert town.other.data == b"late"


def test_nobody_answers_in_a_partition():
    town = Town()
    town.network.part(town.one, town.other, 60_000)
    town.network.connect(town.one, 1, town.other.address)
    town.run(for_ms=20_000)
    assert town.one.heard == []
    town.run()
    assert town.one.names() == ["session_failed"]


def test_a_side_that_closes_hears_nothing_more_and_its_last_bytes_arrive():
    town = Town()
    town.connect()
    town.network.send(town.one, 1, b"goodbye")
    town.network.disconnect(town.one, 1)
    town.network.send(town.other, 2, b"wait")
    town.run()
    assert town.one.heard == []
    assert town.other.data == b"goodbye"
    assert town.other.names()[-1] == "session_lost"


def test_a_node_that_started_again_hears_nothing_of_its_old_connections():
    town = Town()
    town.connect()
    town.network.send(town.one, 1, b"old")
    town.other.up = False
    town.network.node_gone(town.other)
    town.other.up = True
    town.other.boot = 2
    town.run()
    assert town.other.heard == []
    assert town.one.names() == ["session_lost"]


def test_names_are_found_unless_they_fail():
    town = Town()
    town.network.resolve(town.one, "n1")
    town.network.resolve(town.one, "nobody")
    town.network.names_fail_until_ms = 10
    town.network.resolve(town.one, "N1")
    town.run()
    assert sorted(town.one.heard, key=str) == sorted(
        [
            ("host_resolved", "n1", ("10.0.0.2",)),
            ("host_resolved", "nobody", ()),
            ("host_resolved", "N1", ()),
        ],
        key=str,
    )


def test_questions_and_answers_come_to_different_ports():
    town = Town()
    town.network.send_datagram(town.one, "10.0.0.2", b"?", None)
    town.run()
    (_, address, port, data, is_answer) = town.other.heard[0]
    assert (address, data, is_answer) == ("10.0.0.1", b"?", False)
    town.network.send_datagram(town.other, address, b"!", port)
    town.run()
    assert town.one.heard[0][3:] == (b"!", True)


def test_datagrams_are_lost_and_doubled():
    counts = set()
    for seed in range(40):
        town = Town(seed, loss=0.3)
        town.network.send_datagram(town.one, "10.0.0.2", b"?", None)
        town.run()
        counts.add(len(town.other.heard))
    assert counts == {0, 1, 2}
