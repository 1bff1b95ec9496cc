"""Links: addresses in turn, one session at a time, and pauses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.queue import ConnectionEvent, ConnectionStatus, OutgoingQueueState
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.link import (
    ADDRESSES_MAX_COUNT,
    HISTORY_MAX_COUNT,
    TRANSITIONS,
    AskPing,
    Hop,
    Link,
    LinkChanged,
    LinkInput,
    LinkOutput,
    LinkState,
    OpenSession,
    ResolveHost,
)

PAGE = Path(__file__).parents[3] / "docs/internals/links.md"
START = Instant(10_000, 1_700_000_000)
RETRY_MS = 5_000
BETA = Guid(b"B" * 16)
GAMMA = Guid(b"G" * 16)
REFUSED = ConnectionStatus.CONNECTION_REFUSED
NO_CONNECTION = ConnectionStatus.SOCKET_CONNECT_FAILURE


def after(milliseconds: int) -> Instant:
    return Instant(START.ticks_ms + milliseconds, START.unix_s + milliseconds // 1_000)


def link_to(*hosts: str, ping: bool = False, direct: bool = True, **config: object) -> Link:
    settings = TransferConfig(ask_ping=ping, **config)  # type: ignore[arg-type]
    return Link("beta", tuple(Hop(host) for host in hosts), settings, direct=direct)


def actions(link: Link) -> list[LinkOutput]:
    """What the link asks for; its changes of state are left out."""
    return [output for output in link.take_outputs() if not isinstance(output, LinkChanged)]


def opened_link(*hosts: str) -> Link:
    link = link_to(*hosts)
    link.wanted(START)
    link.connected(START)
    link.establish_seen(START)
    link.opened(START)
    link.take_outputs()
    assert link.state is LinkState.OPEN
    return link


# One round.


def test_a_link_does_nothing_until_it_is_wanted() -> None:
    link = link_to("10.0.0.1")
    link.wake(after(1_000_000))
    link.retry_now(START)
    assert link.take_outputs() == []
    assert link.state is LinkState.IDLE
    assert link.queue_state is OutgoingQueueState.INACTIVE
    assert link.next_wake_ms is None


@pytest.mark.parametrize(
    ("host", "address"), [("10.0.0.1", "10.0.0.1"), ("FE80:0::1%eth0", "fe80::1%eth0")]
)
def test_an_address_is_not_looked_up(host: str, address: str) -> None:
    link = link_to(host)
    link.wanted(START)
    assert link.take_outputs() == [
        LinkChanged(LinkState.CONNECTING),
        OpenSession(address, NIL_GUID),
    ]


def test_a_host_of_the_configuration_is_not_looked_up_whatever_its_case() -> None:
    link = link_to("BETA", hosts={"Beta": ("10.0.0.1", "10.0.0.2")})
    link.wanted(START)
    assert actions(link) == [OpenSession("10.0.0.1", NIL_GUID)]
    assert link.next_hops == ("IP=10.0.0.1", "IP=10.0.0.2")


def test_any_other_name_is_looked_up_and_only_its_answer_counts() -> None:
    link = link_to("beta", "gamma")
    link.wanted(START)
    assert link.take_outputs() == [LinkChanged(LinkState.RESOLVING), ResolveHost("beta")]
    link.host_resolved("gamma", ("10.0.0.9",), START)
    assert link.take_outputs() == []
    link.host_resolved("BETA", ("10.0.0.1", "fe80::1"), START)
    assert actions(link) == [OpenSession("10.0.0.1", NIL_GUID)]
    assert link.next_hops == ("IP=10.0.0.1", "IPv6=fe80::1")


def test_every_address_of_every_hop_is_tried_at_once_and_in_turn() -> None:
    hops = (Hop("beta", BETA), Hop("10.0.0.3", GAMMA))
    link = Link("beta", hops, TransferConfig(), direct=False)
    link.wanted(START)
    link.host_resolved("beta", ("10.0.0.1", "10.0.0.2", "10.0.0.1"), START)
    tried = []
    while link.state is LinkState.CONNECTING:
        tried += [output for output in actions(link) if isinstance(output, OpenSession)]
        link.connect_failed(NO_CONNECTION, START)
    assert tried == [
        OpenSession("10.0.0.1", BETA),
        OpenSession("10.0.0.2", BETA),
        OpenSession("10.0.0.3", GAMMA),
    ]
    assert link.state is LinkState.WAITING


def test_nobody_in_particular_is_expected_behind_a_direct_name() -> None:
    link = Link("beta", (Hop("10.0.0.1", BETA),), TransferConfig(), direct=True)
    link.wanted(START)
    assert actions(link) == [OpenSession("10.0.0.1", NIL_GUID)]


def test_a_host_with_very_many_addresses_does_not_keep_the_link_for_ever() -> None:
    link = link_to("beta")
    link.wanted(START)
    link.host_resolved("beta", tuple(f"10.0.{n // 250}.{n % 250}" for n in range(999)), START)
    assert len(link.next_hops) == ADDRESSES_MAX_COUNT


@pytest.mark.spec(
    "MQQB-3.1.5.2.3-14",
    "MQQB-3.1.5.2.3-16",
    "MQQB-3.1.5.3.2-11",
    "MQQB-3.1.5.4.2-05",
    "MQQB-3.1.5.4.2-06",
)
def test_the_history_tells_how_a_session_came_about() -> None:
    link = link_to("10.0.0.1")
    link.wanted(START)
    link.connected(after(1_000))
    assert link.queue_state is OutgoingQueueState.WAITING
    link.establish_seen(after(2_000))
    assert link.queue_state is OutgoingQueueState.WAITING
    link.opened(after(3_000))
    assert link.queue_state is OutgoingQueueState.CONNECTED
    steps = (
        ConnectionStatus.IN_PROCESS,
        ConnectionStatus.ESTABLISH_PACKET_RECEIVED,
        ConnectionStatus.ESTABLISHED,
    )
    assert link.history == tuple(
        ConnectionEvent(status, START.unix_s + second, 0, ("10.0.0.1",))
        for second, status in enumerate(steps, 1)
    )
    assert [o.state for o in link.take_outputs() if isinstance(o, LinkChanged)] == [
        LinkState.CONNECTING,
        LinkState.OPENING,
        LinkState.OPEN,
    ]


def test_an_open_link_shows_the_address_that_it_uses() -> None:
    link = link_to("10.0.0.1", "10.0.0.2", "10.0.0.3")
    link.wanted(START)
    link.connect_failed(NO_CONNECTION, START)
    link.opened(START)
    assert link.next_hops == ("IP=10.0.0.2",)
    assert link.last_problem == ""


# Failures.


@pytest.mark.spec("MQQB-3.1.5.2-01", "MQQB-3.1.5.2-02", "MQQB-3.1.5.2-04")
@pytest.mark.parametrize("status", [status for status in ConnectionStatus if status.is_failure])
@pytest.mark.parametrize("stage", ["connecting", "opening"])
def test_a_failure_stands_in_the_history_with_its_status_time_code_and_address(
    status: ConnectionStatus, stage: str
) -> None:
    link = link_to("10.0.0.1")
    link.wanted(START)
    if stage == "opening":
        link.connected(START)
        link.closed(status, "It said no.", after(2_000), wanted=True)
    else:
        link.connect_failed(status, after(2_000))
    assert len(link.history) == (2 if stage == "opening" else 1)
    event = link.history[-1]
    assert (event.status, event.time_s) == (status, START.unix_s + 2)
    assert event.error & 0x80000000
    assert event.addresses == ("10.0.0.1",)
    assert "10.0.0.1" in link.last_problem


@pytest.mark.spec("MQQB-3.1.5.2-03")
@pytest.mark.parametrize("status", [s for s in ConnectionStatus if not s.is_failure])
def test_a_failure_without_a_reason_is_of_unknown_reason(status: ConnectionStatus) -> None:
    link = link_to("10.0.0.1", "10.0.0.2")
    link.wanted(START)
    link.connect_failed(status, START)
    link.connected(START)
    link.closed(status, "It ended.", START, wanted=True)
    assert [event.status for event in link.history] == [
        ConnectionStatus.UNKNOWN_FAILURE,
        ConnectionStatus.IN_PROCESS,
        ConnectionStatus.UNKNOWN_FAILURE,
    ]


def test_a_name_that_is_not_found_is_a_failure_of_the_name_service() -> None:
    link = link_to("beta", "10.0.0.1")
    link.wanted(START)
    link.host_resolved("beta", (), after(1_000))
    assert link.history == (
        ConnectionEvent(ConnectionStatus.DNS_FAILURE, START.unix_s + 1, 0xC00E0099, ()),
    )
    assert actions(link)[-1] == OpenSession("10.0.0.1", NIL_GUID)
    assert link.last_problem == "the address of beta could not be found"


def test_a_link_whose_names_are_not_found_needs_validation() -> None:
    link = link_to("beta")
    link.wanted(START)
    link.host_resolved("beta", (), START)
    assert link.state is LinkState.WAITING
    assert link.queue_state is OutgoingQueueState.NEED_VALIDATION


@pytest.mark.spec("MQQB-3.1.5.2.1-10")
def test_without_a_route_the_link_needs_validation_and_looks_again_later() -> None:
    link = link_to()
    link.wanted(START)
    assert link.state is LinkState.WAITING
    assert link.queue_state is OutgoingQueueState.NEED_VALIDATION
    assert link.next_wake_ms == after(RETRY_MS).ticks_ms
    assert link.history[-1].status is ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE
    assert link.last_problem == "no route to beta is known"
    link.hops = (Hop("10.0.0.1"),)
    link.wake(after(RETRY_MS))
    assert actions(link) == [OpenSession("10.0.0.1", NIL_GUID)]


def test_the_history_keeps_the_newest_lines() -> None:
    link = link_to("10.0.0.1")
    link.wanted(START)
    for second in range(HISTORY_MAX_COUNT + 10):
        link.connect_failed(NO_CONNECTION, after(second * 1_000))
        link.retry_now(after(second * 1_000))
    times = [event.time_s - START.unix_s for event in link.history]
    assert times == list(range(10, HISTORY_MAX_COUNT + 10))


# Pauses.


@pytest.mark.spec("MQQB-3.1.6.1-01")
def test_after_the_pause_everything_begins_anew_with_fresh_addresses() -> None:
    link = link_to("beta")
    link.wanted(START)
    link.host_resolved("beta", ("10.0.0.1",), START)
    link.connect_failed(NO_CONNECTION, START)
    link.take_outputs()
    assert link.retry_at_ms == link.next_wake_ms == after(RETRY_MS).ticks_ms
    link.wake(after(RETRY_MS - 1))
    assert link.take_outputs() == []
    link.wake(after(RETRY_MS))
    assert link.take_outputs() == [LinkChanged(LinkState.RESOLVING), ResolveHost("beta")]
    assert link.next_wake_ms is None
    link.wake(after(RETRY_MS))
    assert link.take_outputs() == []
    link.host_resolved("beta", ("10.0.0.2",), after(RETRY_MS))
    assert actions(link) == [OpenSession("10.0.0.2", NIL_GUID)]


def test_the_pause_is_the_configured_one() -> None:
    link = link_to("10.0.0.1", retry_connect_ms=700, round_trip_delay_ms=50)
    link.wanted(START)
    link.connect_failed(NO_CONNECTION, START)
    assert link.next_wake_ms == after(750).ticks_ms


def test_an_operator_can_cut_the_pause_short() -> None:
    link = link_to("10.0.0.1")
    link.wanted(START)
    link.connect_failed(NO_CONNECTION, START)
    link.take_outputs()
    link.retry_now(after(1))
    assert actions(link) == [OpenSession("10.0.0.1", NIL_GUID)]
    link.retry_now(after(2))
    assert link.take_outputs() == []


def test_being_unwanted_meanwhile_does_not_cut_the_pause_short() -> None:
    """Another link that leads to the same computer makes it so, and its session may be short."""
    link = opened_link("10.0.0.1")
    link.closed(REFUSED, "", START, wanted=True)
    link.unwanted(after(1_000))
    assert link.state is LinkState.IDLE
    link.wanted(after(2_000))
    assert actions(link) == []
    assert (link.state, link.next_wake_ms) == (LinkState.WAITING, START.ticks_ms + RETRY_MS)
    link.wake(after(RETRY_MS))
    assert actions(link) == [OpenSession("10.0.0.1", NIL_GUID)]


@pytest.mark.parametrize("reason", ["an operator", "another way"])
def test_a_pause_of_one_that_was_unwanted_is_cut_short_like_any(reason: str) -> None:
    link = opened_link("10.0.0.1")
    link.closed(REFUSED, "", START, wanted=True)
    link.unwanted(after(1_000))
    if reason == "an operator":
        link.retry_now(after(1_500))
    else:
        link.reroute((Hop("10.0.0.2"),))
    link.wanted(after(2_000))
    assert isinstance(actions(link)[0], OpenSession)


def test_being_wanted_more_does_not_cut_the_pause_short() -> None:
    link = link_to("10.0.0.1")
    link.wanted(START)
    link.connect_failed(NO_CONNECTION, START)
    link.take_outputs()
    link.wanted(after(1))
    assert link.take_outputs() == []
    assert link.next_wake_ms == after(RETRY_MS).ticks_ms


# The end of a session.


@pytest.mark.spec("MQQB-3.1.5.9-03", "MQQB-3.1.5.9-04")
def test_a_session_that_ends_with_work_left_is_followed_by_another_one() -> None:
    link = opened_link("10.0.0.1")
    link.closed(ConnectionStatus.SOCKET_SEND_FAILURE, "Gone.", after(60_000), wanted=True)
    assert link.state is LinkState.WAITING
    assert link.queue_state is OutgoingQueueState.DISCONNECTED
    assert link.next_wake_ms == after(60_000 + RETRY_MS).ticks_ms
    assert link.history[-1].status is ConnectionStatus.SOCKET_SEND_FAILURE
    assert link.last_problem == "10.0.0.1: Gone"
    link.wake(after(60_000 + RETRY_MS))
    assert actions(link) == [OpenSession("10.0.0.1", NIL_GUID)]


def test_the_next_address_is_tried_at_once_when_a_session_ends() -> None:
    link = opened_link("10.0.0.1", "10.0.0.2")
    link.closed(ConnectionStatus.SOCKET_SEND_FAILURE, "Gone.", START, wanted=True)
    assert link.take_outputs() == [
        LinkChanged(LinkState.CONNECTING),
        OpenSession("10.0.0.2", NIL_GUID),
    ]


@pytest.mark.spec("MQQB-3.1.5.9-03")
def test_a_session_that_ends_without_work_left_leaves_the_link_idle() -> None:
    link = opened_link("10.0.0.1", "10.0.0.2")
    before = link.history
    link.closed(ConnectionStatus.ESTABLISHED, "Nothing was sent for a while.", START, wanted=False)
    assert link.state is LinkState.IDLE
    assert link.queue_state is OutgoingQueueState.DISCONNECTED
    assert link.history == before
    assert link.last_problem == ""
    assert link.next_wake_ms is None


def test_a_new_message_reconnects_after_an_idle_session_was_closed() -> None:
    link = opened_link("10.0.0.1")
    link.closed(ConnectionStatus.ESTABLISHED, "Nothing was sent for a while.", START, wanted=False)
    link.take_outputs()
    link.wanted(START)
    assert actions(link) == [OpenSession("10.0.0.1", NIL_GUID)]


def test_a_link_that_is_no_longer_wanted_stops_where_it_can() -> None:
    resolving = link_to("beta")
    resolving.wanted(START)
    waiting = link_to()
    waiting.wanted(START)
    for link in (resolving, waiting):
        link.unwanted(START)
        assert link.state is LinkState.IDLE
        assert link.queue_state is OutgoingQueueState.INACTIVE
        assert link.next_wake_ms is None


def test_an_attempt_under_way_is_the_last_one_when_the_link_is_no_longer_wanted() -> None:
    link = link_to("10.0.0.1", "10.0.0.2")
    link.wanted(START)
    link.unwanted(START)
    assert link.state is LinkState.CONNECTING
    link.take_outputs()
    link.connect_failed(NO_CONNECTION, START)
    assert link.take_outputs() == [LinkChanged(LinkState.IDLE)]


# Pings.


@pytest.mark.spec("MQQB-3.1.5.2.2-01")
def test_an_address_that_accepts_the_ping_gets_a_session() -> None:
    link = link_to("10.0.0.1", ping=True)
    link.wanted(START)
    assert link.take_outputs() == [LinkChanged(LinkState.PINGING), AskPing("10.0.0.1")]
    link.ping_answered(True, START)
    assert link.take_outputs() == [
        LinkChanged(LinkState.CONNECTING),
        OpenSession("10.0.0.1", NIL_GUID, pinged=True),
    ]


@pytest.mark.spec("MQQB-3.1.5.2.2-01", "MQQB-3.1.5.2.2-02")
def test_a_ping_that_fails_stands_in_the_history_and_the_link_waits() -> None:
    link = link_to("10.0.0.1", ping=True)
    link.wanted(START)
    link.ping_answered(False, after(1_000))
    [event] = link.history
    assert (event.status, event.time_s) == (ConnectionStatus.PING_FAILURE, START.unix_s + 1)
    assert event.error & 0x80000000
    assert event.addresses == ("10.0.0.1",)
    assert link.state is LinkState.WAITING
    assert link.next_wake_ms == after(1_000 + RETRY_MS).ticks_ms


def test_a_ping_that_fails_leads_to_the_next_address() -> None:
    link = link_to("10.0.0.1", "10.0.0.2", ping=True)
    link.wanted(START)
    link.ping_answered(False, START)
    assert actions(link) == [AskPing("10.0.0.1"), AskPing("10.0.0.2")]


def test_the_link_does_not_ping_after_a_pause() -> None:
    link = link_to("10.0.0.1", ping=True)
    link.wanted(START)
    link.ping_answered(False, START)
    link.take_outputs()
    link.wake(after(RETRY_MS))
    assert actions(link) == [OpenSession("10.0.0.1", NIL_GUID, pinged=False)]


def test_a_ping_that_nobody_needs_any_more_opens_nothing() -> None:
    link = link_to("10.0.0.1", ping=True)
    link.wanted(START)
    link.unwanted(START)
    link.take_outputs()
    link.ping_answered(True, START)
    assert link.take_outputs() == [LinkChanged(LinkState.IDLE)]
    assert link.history == ()


def test_a_lost_session_is_forgotten_once_the_next_attempt_has_begun() -> None:
    link = link_to("10.0.0.1", ping=True)
    link.wanted(START)
    link.ping_answered(True, START)
    link.opened(START)
    link.closed(ConnectionStatus.SOCKET_SEND_FAILURE, "Gone.", START, wanted=False)
    assert link.queue_state is OutgoingQueueState.DISCONNECTED
    link.wanted(START)
    link.unwanted(START)
    link.ping_answered(True, START)
    assert link.queue_state is OutgoingQueueState.INACTIVE


# Any input in any state.


def tell(link: Link, given: LinkInput, choice: int, now: Instant) -> None:
    """Give an input; `choice` picks its arguments."""
    answers = ((), ("10.0.0.2",), ("10.0.0.2", "10.0.0.3"))
    calls: dict[LinkInput, Callable[[], None]] = {
        LinkInput.WANTED: lambda: link.wanted(now),
        LinkInput.UNWANTED: lambda: link.unwanted(now),
        LinkInput.HOST_RESOLVED: lambda: link.host_resolved(
            ("beta", "gamma")[choice % 2], answers[choice % 3], now
        ),
        LinkInput.PING_ANSWERED: lambda: link.ping_answered(choice % 2 == 0, now),
        LinkInput.CONNECTED: lambda: link.connected(now),
        LinkInput.CONNECT_FAILED: lambda: link.connect_failed(NO_CONNECTION, now),
        LinkInput.ESTABLISH_SEEN: lambda: link.establish_seen(now),
        LinkInput.OPENED: lambda: link.opened(now),
        LinkInput.CLOSED: lambda: link.closed(REFUSED, "No.", now, wanted=choice % 2 == 0),
        LinkInput.RETRY_NOW: lambda: link.retry_now(now),
        LinkInput.WAKE: lambda: link.wake(now),
    }
    calls[given]()


class Observer:
    """What somebody outside knows of a link: its outputs, and what it was told."""

    def __init__(self) -> None:
        self.wanted = False
        self.resolving = self.pinging = self.session = self.session_open = False

    def told(self, given: LinkInput, choice: int) -> None:
        if given is LinkInput.WANTED:
            self.wanted = True
        elif given is LinkInput.UNWANTED:
            self.wanted = self.resolving = False
        elif given is LinkInput.PING_ANSWERED:
            self.pinging = False
        elif given is LinkInput.OPENED and self.session:
            self.session_open = True
        elif given is LinkInput.CLOSED and self.session:
            self.wanted = choice % 2 == 0
            self.session = self.session_open = False
        elif given is LinkInput.CONNECT_FAILED and not self.session_open:
            self.session = False

    def heard(self, link: Link, outputs: list[LinkOutput]) -> None:
        for output in outputs:
            if isinstance(output, OpenSession):
                assert not self.session, "two connections at once"
                self.session = True
                self.resolving = False
            elif isinstance(output, AskPing):
                assert not self.pinging, "two pings at once"
                self.pinging = True
                self.resolving = False
            elif isinstance(output, ResolveHost):
                self.resolving = True
            elif output.state is LinkState.WAITING:
                self.resolving = False
        busy = self.session or self.pinging or self.resolving
        assert not (self.session and self.pinging)
        assert not self.wanted or busy or link.next_wake_ms is not None
        if not self.wanted and not busy:
            assert link.state is LinkState.IDLE
        if link.state is LinkState.IDLE:
            assert (link.next_wake_ms, link.next_hops, link.address) == (None, (), "")
        assert (link.state is LinkState.OPEN) == self.session_open
        assert (link.state is LinkState.WAITING) == (link.next_wake_ms is not None)
        assert len(link.history) <= HISTORY_MAX_COUNT


HOPS = [
    (),
    ("10.0.0.1",),
    ("beta",),
    ("10.0.0.1", "beta"),
    ("beta", "gamma"),
    ("gamma", "10.0.0.1"),
]


@pytest.mark.parametrize("ping", [False, True])
@given(
    st.sampled_from(HOPS),
    st.lists(
        st.tuples(st.sampled_from(LinkInput), st.integers(0, 5), st.integers(0, 2 * RETRY_MS)),
        max_size=80,
    ),
)
def test_whatever_a_link_is_told_it_keeps_its_promises(
    ping: bool, hosts: tuple[str, ...], steps: list[tuple[LinkInput, int, int]]
) -> None:
    link = link_to(*hosts, ping=ping)
    observer = Observer()
    elapsed_ms = 0
    for given_input, choice, pause_ms in steps:
        elapsed_ms += pause_ms
        before = link.state
        tell(link, given_input, choice, after(elapsed_ms))
        observer.told(given_input, choice)
        outputs = link.take_outputs()
        observer.heard(link, outputs)
        if (before, given_input) in TRANSITIONS:
            assert link.state in TRANSITIONS[before, given_input]
        else:
            assert (link.state, outputs) == (before, [])

    assert_opens_when_all_is_well(link, elapsed_ms)


def assert_opens_when_all_is_well(link: Link, elapsed_ms: int) -> None:
    """A wanted link gets its session as soon as names, pings and connections succeed."""
    link.hops = (Hop("beta"),)
    for _ in range(8):
        elapsed_ms += RETRY_MS
        now = after(elapsed_ms)
        link.wanted(now)
        link.wake(now)
        for host in ("beta", "gamma"):
            link.host_resolved(host, ("10.0.0.1",), now)
        link.ping_answered(True, now)
        link.connected(now)
        link.opened(now)
    assert link.state is LinkState.OPEN


CHOICES = {LinkInput.HOST_RESOLVED: 6, LinkInput.PING_ANSWERED: 2, LinkInput.CLOSED: 2}
NO_MATTER = ("_history", "last_problem")


def observed_transitions(
    hosts: tuple[str, ...], ping: bool
) -> Iterator[tuple[LinkState, LinkInput, LinkState]]:
    """Walk through everything that can happen to a link, and give each step."""
    # Without a pause the time can stand still, and the situations are finitely many.
    unexplored = [link_to(*hosts, ping=ping, retry_connect_ms=0, hosts={"delta": ()})]
    seen = set()
    while unexplored:
        start = unexplored.pop()
        for given_input in LinkInput:
            for choice in range(CHOICES.get(given_input, 1)):
                link = copy.deepcopy(start)
                tell(link, given_input, choice, START)
                outputs = link.take_outputs()
                heeded = (start.state, given_input) in TRANSITIONS
                if heeded or outputs or link.state is not start.state:
                    yield start.state, given_input, link.state
                situation = repr({k: v for k, v in vars(link).items() if k not in NO_MATTER})
                if situation not in seen:
                    seen.add(situation)
                    unexplored.append(link)


# Written down from MQQB 3.1.5.2 and 3.1.6.1 and docs/internals/links.md: state, input, where to.
STEPS = """
IDLE WANTED RESOLVING PINGING CONNECTING WAITING
RESOLVING UNWANTED IDLE
RESOLVING HOST_RESOLVED RESOLVING PINGING CONNECTING WAITING
PINGING PING_ANSWERED RESOLVING PINGING CONNECTING WAITING IDLE
CONNECTING CONNECTED OPENING
CONNECTING CONNECT_FAILED RESOLVING PINGING CONNECTING WAITING IDLE
CONNECTING ESTABLISH_SEEN OPENING
CONNECTING OPENED OPEN
CONNECTING CLOSED RESOLVING PINGING CONNECTING WAITING IDLE
OPENING CONNECT_FAILED RESOLVING PINGING CONNECTING WAITING IDLE
OPENING ESTABLISH_SEEN OPENING
OPENING OPENED OPEN
OPENING CLOSED RESOLVING PINGING CONNECTING WAITING IDLE
OPEN CLOSED RESOLVING CONNECTING WAITING IDLE
WAITING UNWANTED IDLE
WAITING RETRY_NOW RESOLVING CONNECTING WAITING
WAITING WAKE RESOLVING CONNECTING WAITING
"""


def test_every_transition_of_the_table_can_happen_and_no_other() -> None:
    situations = [(), ("delta",), ("10.0.0.1", "beta"), ("beta", "10.0.0.1")]
    observed = {
        step
        for hosts in situations
        for ping in (False, True)
        for step in observed_transitions(hosts, ping)
    }
    rows = [line.split() for line in STEPS.strip().splitlines()]
    table = {
        (LinkState[row[0]], LinkInput[row[1]], LinkState[name]) for row in rows for name in row[2:]
    }
    assert observed == table
    assert {(*key, to) for key, states in TRANSITIONS.items() for to in states} == table


# The page about links.


@pytest.mark.parametrize("name", [state.name for state in LinkState])
def test_the_page_explains_every_state(name: str) -> None:
    assert f"| `{name}` |" in PAGE.read_text(encoding="utf-8")
