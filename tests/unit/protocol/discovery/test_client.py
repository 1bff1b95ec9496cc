"""The search for a directory server: every step that a search can take, and what it ignores."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.protocol.discovery.client import (
    ANSWER_MAX_BYTES,
    SEARCHED_NETWORKS_MAX_COUNT,
    Broadcast,
    DirectoryFound,
    DirectoryNotFound,
    DiscoveryClient,
    Network,
)
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery, ServerEntry
from tests.golden import golden

ENTERPRISE = Guid.parse("e6eaba61-d1c6-11db-baac-0003ff4e2d22")
HOME = Guid.parse("dcc51bf6-d4ad-4543-8739-71568e8f9128")
AWAY = Guid.parse("e6eaba60-d1c6-11db-baac-0003ff4e2d22")
REQUEST = Guid.parse("f291a103-e33c-ab4f-a930-be3a33e432dd")
CABLE = Guid.parse("e6eaba62-d1c6-11db-baac-0003ff4e2d22")
WAIT_MS = 15_000
START = Instant(1_000, 1_700_000_000)


def after(milliseconds: int) -> Instant:
    return Instant(START.ticks_ms + milliseconds, START.unix_s + milliseconds // 1_000)


def networks(count: int) -> tuple[Network, ...]:
    return tuple(Network(f"10.0.{n}.9", f"10.0.{n}.255") for n in range(count))


def searching(count: int) -> DiscoveryClient:
    """A client that has begun to ask on the first of some networks."""
    client = DiscoveryClient(ENTERPRISE, HOME)
    client.start(networks(count), REQUEST, START)
    assert client.take_outputs() == [asked(0)]
    return client


def asked(network: int, request: Guid = REQUEST) -> Broadcast:
    return Broadcast(network, DirectoryQuery(ENTERPRISE, request, HOME).encode())


def own(network: Guid = CABLE, request: Guid = REQUEST) -> bytes:
    return DirectoryAnswer(request, (network,)).encode()


def other(*names: str, request: Guid = REQUEST, network: Guid = CABLE) -> bytes:
    servers = tuple(map(ServerEntry, names or ("pec",)))
    return DirectoryAnswer(request, (network,), AWAY, servers).encode()


def found_own(address: str, network: int, *cables: Guid) -> DirectoryFound:
    return DirectoryFound(address, networks(9)[network], cables or (CABLE,))


def found_other(address: str, network: int, *names: str) -> DirectoryFound:
    return DirectoryFound(address, networks(9)[network], (CABLE,), AWAY, names or ("pec",))


# The printed example.


@pytest.mark.spec("MQSD-3.1.3-01", "MQSD-3.1.5.1-04", "MQSD-3.1.4.1-08")
def test_the_printed_query_goes_out():
    client = DiscoveryClient(ENTERPRISE, HOME)
    client.start(networks(1), REQUEST, START)
    assert client.take_outputs() == [Broadcast(0, golden("mqsd-4-request"))]


@pytest.mark.spec("MQSD-3.1.5.2-12", "MQSD-3.1.5.2-13", "MQSD-3.1.5.2-17")
def test_the_printed_answers_end_with_the_server_of_the_own_site():
    client = searching(1)
    client.received(0, "10.0.0.1", golden("mqsd-4-answer-same-site"), after(10))
    assert client.take_outputs() == [found_own("10.0.0.1", 0)]
    assert client.next_wake_ms is None
    client.received(0, "10.0.0.2", golden("mqsd-4-answer-other-site"), after(11))
    assert client.take_outputs() == []


@pytest.mark.spec("MQSD-3.1.7.1-03", "MQSD-3.1.7.1-04", "MQSD-3.1.7.1-05", "MQSD-3.1.7.2-03")
def test_the_printed_answer_of_another_site_alone_names_its_server():
    client = searching(1)
    client.received(0, "10.0.0.2", golden("mqsd-4-answer-other-site"), after(10))
    client.wake(after(10 + WAIT_MS))
    assert client.take_outputs() == [
        DirectoryFound("10.0.0.2", networks(1)[0], (CABLE,), AWAY, ("nt4pec",))
    ]


# The rows of the machine. [MQSD 3.1.4.1]


@pytest.mark.spec("MQSD-3.1.4.1-04", "MQSD-3.1.4.1-01")
def test_what_was_found_is_found_again_without_asking():
    client = searching(1)
    client.received(0, "10.0.0.1", own(), after(10))
    client.take_outputs()
    client.start(networks(2), AWAY, after(99_000))
    assert client.take_outputs() == [found_own("10.0.0.1", 0)]
    assert not client.is_searching


@pytest.mark.parametrize("reason", ["forced", "dialled"])
def test_a_forced_search_and_one_over_dialled_networks_ask_again(reason):
    client = searching(1)
    client.received(0, "10.0.0.1", own(), after(10))
    client.take_outputs()
    places = (Network("10.0.0.9", "10.0.0.255", remote_access=reason == "dialled"),)
    client.start(places, AWAY, after(99_000), force=reason == "forced")
    assert client.take_outputs() == [asked(0, AWAY)]


@pytest.mark.spec("MQSD-3.1.3-02", "MQSD-3.1.4.1-05", "MQSD-3.1.4.1-06")
def test_a_new_client_knows_of_no_network_and_asks_on_the_first_one_with_the_drawn_identifier():
    client = DiscoveryClient(ENTERPRISE, HOME)
    assert client.last_network is None
    client.start(networks(3), AWAY, START)
    assert client.take_outputs() == [asked(0, AWAY)]


@pytest.mark.spec("MQSD-3.1.4.1-07", "MQSD-3.1.6.1-02")
def test_answers_of_an_earlier_search_do_not_count_in_the_next_one():
    client = searching(1)
    client.received(0, "10.0.0.1", own(), after(10))
    client.take_outputs()
    client.start(networks(1), AWAY, after(20), force=True)
    client.take_outputs()
    client.received(0, "10.0.0.1", own(), after(21))
    client.wake(after(20 + WAIT_MS))
    assert client.take_outputs() == [DirectoryNotFound()]
    assert client.last_network is None


@pytest.mark.spec("MQSD-3.1.4.1-02")
def test_without_a_network_nothing_is_found():
    client = DiscoveryClient(ENTERPRISE, HOME)
    client.start((), REQUEST, START)
    assert client.take_outputs() == [DirectoryNotFound()]
    assert client.next_wake_ms is None


# [MQSD 3.1.5.2]


@pytest.mark.spec(
    "MQSD-3.1.5.2-04",
    "MQSD-3.1.5.2-09",
    "MQSD-3.1.5.2-10",
    "MQSD-3.1.5.1-01",
    "MQSD-3.1.5.1-05",
)
def test_after_an_answer_of_the_own_site_the_next_network_is_asked_at_once():
    client = searching(2)
    client.received(0, "10.0.0.1", own(), after(10))
    assert client.take_outputs() == [asked(1)]


@pytest.mark.spec(
    "MQSD-3.1.5.2-05",
    "MQSD-3.1.5.2-06",
    "MQSD-3.1.5.2-07",
    "MQSD-3.1.5.2-08",
    "MQSD-3.1.5.1-03",
)
def test_an_answer_of_the_own_site_is_kept_while_the_next_network_has_its_time():
    client = searching(2)
    client.received(0, "10.0.0.1", own(), after(10))
    assert client.take_outputs() == [asked(1)]
    assert client.last_network == networks(2)[0]
    assert client.next_wake_ms == after(10 + WAIT_MS).ticks_ms
    client.wake(after(WAIT_MS))
    assert client.take_outputs() == []
    client.wake(after(10 + WAIT_MS))
    assert client.take_outputs() == [found_own("10.0.0.1", 0)]


@pytest.mark.spec("MQSD-3.1.5.2-14", "MQSD-3.1.5.2-16", "MQSD-3.1.7.2-01", "MQSD-3.1.7.2-02")
def test_an_answer_of_the_own_site_on_the_last_network_ends_the_search():
    client = searching(2)
    client.wake(after(WAIT_MS))
    client.take_outputs()
    client.received(1, "10.0.1.1", own(HOME), after(WAIT_MS + 1))
    assert client.take_outputs() == [found_own("10.0.1.1", 1, HOME)]
    assert client.last_network == networks(2)[1]
    assert client.next_wake_ms is None


@pytest.mark.spec(
    "MQSD-3.1.5.2-18",
    "MQSD-3.1.5.2-19",
    "MQSD-3.1.5.2-20",
    "MQSD-3.1.5.2-21",
    "MQSD-3.1.5.2-22",
    "MQSD-3.1.5.2-23",
)
@pytest.mark.parametrize("count", [1, 2])
def test_after_an_answer_of_another_site_the_wait_begins_again(count):
    client = searching(count)
    client.received(0, "10.0.0.2", other(), after(14_000))
    assert client.take_outputs() == []
    assert client.next_wake_ms == after(14_000 + WAIT_MS).ticks_ms
    assert client.last_network == networks(1)[0]
    client.wake(after(14_000 + WAIT_MS - 1))
    assert client.take_outputs() == []
    client.wake(after(14_000 + WAIT_MS))
    assert client.take_outputs() == ([found_other("10.0.0.2", 0)] if count == 1 else [asked(1)])
    client.wake(after(14_000 + 2 * WAIT_MS))
    assert client.take_outputs() == ([] if count == 1 else [found_other("10.0.0.2", 0)])


@pytest.mark.spec("MQSD-3.1.5.2-11")
def test_a_second_answer_of_another_site_ends_the_wait_on_a_network():
    client = searching(2)
    client.received(0, "10.0.0.2", other(), after(10))
    client.received(0, "10.0.0.3", other(), after(20))
    assert client.take_outputs() == [asked(1)]
    assert client.next_wake_ms == after(20 + WAIT_MS).ticks_ms


@pytest.mark.spec(
    "MQSD-3.1.5.2-24",
    "MQSD-3.1.5.2-25",
    "MQSD-3.1.5.2-26",
    "MQSD-3.1.5.2-27",
    "MQSD-3.1.5.2-28",
    "MQSD-3.1.5.2-29",
    "MQSD-3.1.7.1-01",
    "MQSD-3.1.7.1-02",
)
def test_on_the_last_network_it_ends_the_search_and_the_first_answer_stands():
    client = searching(1)
    client.received(0, "10.0.0.2", other("first", "second"), after(10))
    client.received(0, "10.0.0.3", other("third"), after(20))
    assert client.take_outputs() == [found_other("10.0.0.2", 0, "first", "second")]
    assert client.last_network == networks(1)[0]
    assert client.next_wake_ms is None


def test_an_own_answer_on_the_first_network_is_not_lost_on_the_second():
    # (C-112): the specification empties what it keeps when the next network is asked.
    client = searching(2)
    client.received(0, "10.0.0.1", own(), after(10))
    client.take_outputs()
    client.wake(after(10 + WAIT_MS))
    assert client.take_outputs() == [found_own("10.0.0.1", 0)]


def test_an_own_answer_beats_one_of_another_site_that_came_before():
    # (C-113): the list of the other site's servers does not replace what is known of ours.
    client = searching(1)
    client.received(0, "10.0.0.2", other(), after(10))
    client.received(0, "10.0.0.1", own(HOME), after(20))
    (found,) = client.take_outputs()
    assert found == found_own("10.0.0.1", 0, HOME)
    assert found.same_site
    assert found.servers == ()


def test_nobody_waits_for_a_better_answer_than_one_of_the_own_site():
    client = searching(2)
    client.received(0, "10.0.0.1", own(), after(10))
    client.take_outputs()
    client.received(1, "10.0.1.2", other(), after(20))
    assert client.take_outputs() == [found_own("10.0.0.1", 0)]


def test_a_server_of_the_own_site_is_waited_for_on_every_network():
    client = searching(2)
    client.received(0, "10.0.0.2", other(), after(10))
    client.wake(after(10 + WAIT_MS))
    assert client.take_outputs() == [asked(1)]
    client.received(1, "10.0.1.2", other(), after(20 + WAIT_MS))
    assert client.take_outputs() == []
    client.received(1, "10.0.1.1", own(), after(30 + WAIT_MS))
    assert client.take_outputs() == [found_own("10.0.1.1", 1)]


def test_of_two_own_answers_the_first_stands():
    client = searching(2)
    client.received(0, "10.0.0.1", own(), after(10))
    client.received(1, "10.0.1.1", own(HOME), after(20))
    assert client.take_outputs() == [asked(1), found_own("10.0.0.1", 0)]


# [MQSD 3.1.6.1]


@pytest.mark.spec("MQSD-3.1.6.1-01")
def test_a_silent_network_is_left_after_15_seconds():
    client = searching(2)
    assert client.next_wake_ms == after(WAIT_MS).ticks_ms
    client.wake(after(WAIT_MS - 1))
    assert client.take_outputs() == []
    client.wake(after(WAIT_MS))
    assert client.take_outputs() == [asked(1)]


@pytest.mark.spec("MQSD-3.1.6.1-03", "MQSD-3.1.6.1-04", "MQSD-3.1.6.1-05", "MQSD-3.1.6.1-06")
def test_when_the_last_network_stays_silent_the_best_answer_of_all_is_the_result():
    client = searching(2)
    client.received(0, "10.0.0.2", other("first"), after(10))
    client.wake(after(10 + WAIT_MS))
    client.wake(after(10 + 2 * WAIT_MS))
    assert client.take_outputs() == [asked(1), found_other("10.0.0.2", 0, "first")]
    client.start(networks(2), AWAY, after(99_000))
    assert client.take_outputs() == [found_other("10.0.0.2", 0, "first")]


def test_a_network_that_cannot_be_asked_is_not_waited_for():
    client = searching(2)
    client.not_sent(1, after(5))
    assert client.take_outputs() == []
    client.not_sent(0, after(5))
    assert client.take_outputs() == [asked(1)]
    client.not_sent(1, after(6))
    assert client.take_outputs() == [DirectoryNotFound()]
    client.not_sent(1, after(7))
    assert client.take_outputs() == []


def test_a_search_that_is_given_up_has_no_result_and_another_may_begin():
    client = searching(2)
    client.received(0, "10.0.0.1", own(), after(10))
    client.give_up()
    assert client.take_outputs() == []
    assert client.next_wake_ms is None
    client.received(1, "10.0.1.1", own(), after(20))
    client.wake(after(10 * WAIT_MS))
    assert client.take_outputs() == []
    client.start(networks(1), REQUEST, after(99_000))
    assert client.take_outputs() == [asked(0)]


# What is ignored.


@pytest.mark.spec("MQSD-3.1.5.2-01")
@pytest.mark.parametrize("network", [-1, 0, 2, 3, 99])
def test_what_comes_by_another_network_is_ignored(network):
    client = searching(3)
    client.wake(after(WAIT_MS))
    client.take_outputs()
    client.received(network, "10.0.0.1", own(), after(WAIT_MS + 1))
    assert client.take_outputs() == []
    assert client.next_wake_ms == after(2 * WAIT_MS).ticks_ms
    assert client.last_network is None


@pytest.mark.spec("MQSD-3.1.5.2-03")
@given(st.binary(min_size=16, max_size=16).map(Guid).filter(lambda drawn: drawn != REQUEST))
def test_an_answer_to_somebody_else_is_ignored(request_id):
    client = searching(1)
    for data in (own(request=request_id), other(request=request_id)):
        client.received(0, "10.0.0.1", data, after(10))
        assert client.take_outputs() == []
        assert client.last_network is None
    client.wake(after(WAIT_MS))
    assert client.take_outputs() == [DirectoryNotFound()]


@pytest.mark.spec("MQSD-3.1.5.2-02")
@given(st.data())
def test_what_is_no_answer_is_ignored(data):
    right = data.draw(st.sampled_from([own(), other("one", "two")]))
    wrong = data.draw(
        st.one_of(
            st.binary(max_size=100),
            st.integers(0, len(right) - 1).map(lambda size: right[:size]),
            st.binary(min_size=1, max_size=20).map(lambda tail: right + tail),
            st.sampled_from([0, 1, 3, 255]).map(lambda kind: right[:1] + bytes([kind]) + right[2:]),
            st.sampled_from([0, 33, 0xFFFFFFFF]).map(
                lambda count: right[:20] + struct.pack("<I", count) + right[24:]
            ),
            st.just(golden("mqsd-4-request")),
        )
    )
    client = searching(1)
    client.received(0, "10.0.0.1", wrong, after(10))
    assert client.take_outputs() == []
    assert client.next_wake_ms == after(WAIT_MS).ticks_ms


def test_an_answer_beyond_the_limit_is_ignored_and_one_within_is_read():
    names = [f"server{number:03}" for number in range(300)]
    room = (ANSWER_MAX_BYTES - 32 - 16 - 16 - 2) // 2 - len(",".join("10" + n for n in names))
    client = searching(1)
    longest = other(*names[:-1], names[-1] + room * "x")
    assert len(longest) == ANSWER_MAX_BYTES
    client.received(0, "10.0.0.2", other(*names[:-1], names[-1] + (room + 1) * "x"), after(10))
    assert client.last_network is None
    client.received(0, "10.0.0.2", longest, after(10))
    assert client.last_network is not None


def test_a_late_answer_is_ignored_even_before_the_client_is_woken():
    client = searching(2)
    client.received(0, "10.0.0.1", own(), after(WAIT_MS))
    assert client.take_outputs() == [asked(1)]
    client.received(1, "10.0.1.1", own(), after(2 * WAIT_MS))
    assert client.take_outputs() == [DirectoryNotFound()]
    assert client.last_network is None


def test_networks_beyond_the_limit_are_not_asked():
    client = DiscoveryClient(ENTERPRISE, HOME)
    many = tuple(Network(f"10.{n}.0.9", f"10.{n}.255.255") for n in range(40))
    client.start(many, REQUEST, START)
    for number in range(60):
        client.wake(after((number + 1) * WAIT_MS))
    outputs = client.take_outputs()
    assert [o.network for o in outputs[:-1]] == list(range(SEARCHED_NETWORKS_MAX_COUNT))
    assert outputs[-1] == DirectoryNotFound()


class Searches(RuleBasedStateMachine):
    """Any answers at any time: a search asks each network once, in order, and ends well."""

    @initialize(count=st.integers(0, 4))
    def begin(self, count):
        self.client = DiscoveryClient(ENTERPRISE, HOME)
        self.count = count
        self.now_ms = 0
        self.searches = 0
        self.restart(self.now_ms)

    def restart(self, began_ms):
        self.searches += 1
        self.request = Guid(self.searches.to_bytes(16, "little"))
        self.began_ms = began_ms
        self.current = -1
        self.over = False
        self.expected: DirectoryFound | None = None
        self.heard_on: list[int] = []
        self.client.start(networks(self.count), self.request, after(began_ms), force=True)
        self.collect()

    def collect(self):
        for output in self.client.take_outputs():
            assert not self.over, "nothing follows the result"
            if isinstance(output, Broadcast):
                self.current += 1
                assert output == asked(self.current, self.request)
            else:
                self.over = True
                assert output == (self.expected or DirectoryNotFound())

    @rule(
        network=st.integers(-1, 4),
        same_site=st.booleans(),
        to_us=st.sampled_from([True, True, True, False]),
        server=st.integers(1, 9),
    )
    def answer(self, network, same_site, to_us, server):
        request = self.request if to_us else Guid(b"?" * 16)
        data = own(request=request) if same_site else other(request=request)
        address = f"10.0.{network}.{server}"
        before = self.client.next_wake_ms
        counts = to_us and not self.over and network == self.current
        if counts:
            self.heard_on.append(network)
            if self.expected is None or (same_site and not self.expected.same_site):
                make = found_own if same_site else found_other
                self.expected = make(address, network)
        self.client.received(network, address, data, after(self.now_ms))
        if not counts:
            assert self.client.next_wake_ms == before
        self.collect()
        if counts and (self.expected is not None and self.expected.same_site):
            assert self.over or self.current == network + 1

    @rule(data=st.binary(max_size=60))
    def rubbish(self, data):
        before = self.client.next_wake_ms
        self.client.received(self.current, "10.9.9.9", data, after(self.now_ms))
        assert self.client.take_outputs() == []
        assert self.client.next_wake_ms == before

    @rule(pause_ms=st.integers(0, 2 * WAIT_MS))
    def wait(self, pause_ms):
        until = self.now_ms + pause_ms
        while (due := self.client.next_wake_ms) is not None and due <= after(until).ticks_ms:
            self.now_ms = due - START.ticks_ms
            self.client.wake(after(self.now_ms))
            self.collect()
        self.now_ms = until

    @precondition(lambda self: self.over)
    @rule()
    def search_again(self):
        self.restart(self.now_ms)

    @invariant()
    def a_search_ends_in_time(self):
        if not hasattr(self, "client"):
            return
        assert self.client.is_searching == (not self.over)
        if not self.over:
            # Nobody can make it wait longer than twice on each network.
            assert self.now_ms - self.began_ms <= 2 * WAIT_MS * self.count
            assert self.heard_on.count(self.current) <= 1
        else:
            assert self.current == self.count - 1
            assert self.client.next_wake_ms is None


TestSearches = Searches.TestCase
