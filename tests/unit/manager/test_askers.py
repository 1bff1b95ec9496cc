"""Who is known, who is a stranger, and what strangers may cause."""

from __future__ import annotations

import cProfile

from openmsmq.manager.askers import Asker
from openmsmq.manager.messages.report_rates import ReportRates
from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.limits import STRANGERS_REMEMBERED_MAX_COUNT
from openmsmq.model.peers import PeerPolicy, PeerRule
from tests.transfer.network import ALPHA, BETA, GAMMA, PEER, Computer, Network, Peer

A_SECOND_MS = 1_000


def asker(address: str) -> Asker:
    return Asker(address, NIL_GUID, known=False)


def known(computer: Computer) -> dict[str, bool]:
    """Say of each open session of a computer, by its address, whether its peer is known."""
    stock = computer.manager._stock  # noqa: SLF001 - what is asked is inside
    sessions = computer.manager._sessions  # noqa: SLF001 - as above
    found = map(stock.acquaintances.asker_of, sessions.peers.values())
    return {each.address: each.known for each in found}


def visited(network: Network, computer: Computer, *addresses: str) -> None:
    for address in addresses:
        peer = network.peer(address)
        peer.identifier = type(peer.identifier)(bytes([int(address[-1])]) * 16)
        peer.open_session(computer.address)


def test_those_whom_the_operator_names_are_known() -> None:
    network = Network()
    rules = (
        PeerRule(name="one", addresses=(PEER,)),
        PeerRule(name="many", addresses=("127.0.8.0/24",)),
        PeerRule(name="foe", addresses=("127.0.9.5",), refuse=True),
    )
    beta = network.manager(
        "BETA",
        BETA,
        hosts={"alpha": (ALPHA,)},
        next_hops={"x": (GAMMA, "elsewhere")},
        peers=PeerPolicy(rules=rules),
    )
    visited(network, beta, ALPHA, GAMMA, PEER, "127.0.8.7", "127.0.7.7")
    assert known(beta) == {
        ALPHA: True,
        GAMMA: True,
        PEER: True,
        "127.0.8.7": True,
        "127.0.7.7": False,
    }


def test_those_to_whom_an_application_sends_are_known_and_those_who_want_reports_are_not() -> None:
    network = Network()
    beta = network.manager("BETA", BETA)
    peer: Peer = network.peer(PEER)
    beta.send(rf"DIRECT=TCP:{PEER}\private$\orders", b"body")
    network.run()
    peer.accept_session()
    assert known(beta) == {PEER: True}


def test_an_allowance_grows_again() -> None:
    rates = ReportRates()
    at_once = sum(rates.take(asker(PEER), 100, Instant(0, 0)) for _ in range(1_500))
    assert at_once == 1_000
    later = Instant(2 * A_SECOND_MS, 2)
    assert sum(rates.take(asker(PEER), 100, later) for _ in range(500)) == 200


def test_bytes_are_counted_as_well() -> None:
    rates = ReportRates()
    taken = sum(rates.take(asker(PEER), 64 * 1024, Instant(0, 0)) for _ in range(100))
    assert taken == 16
    later = Instant(A_SECOND_MS, 1)
    assert sum(rates.take(asker(PEER), 64 * 1024, later) for _ in range(100)) == 2


def test_strangers_beyond_those_that_are_remembered_share_one_allowance() -> None:
    rates = ReportRates()
    now = Instant(0, 0)
    for number in range(4_096):
        rates.take(asker(f"a{number}"), 1, now)
    assert sum(rates.take(asker(f"b{number}"), 1, now) for number in range(1_500)) == 1_000
    much_later = Instant(60 * A_SECOND_MS, 60)
    assert rates.take(asker("c"), 1, much_later), "the others were forgotten"


def test_who_comes_while_all_are_remembered_costs_no_look_at_them_all() -> None:
    rates = ReportRates()
    now = Instant(0, 0)
    for number in range(STRANGERS_REMEMBERED_MAX_COUNT):
        rates.take(asker(f"a{number}"), 1, now)
    watch = cProfile.Profile()
    watch.runcall(lambda: [rates.take(asker(f"b{number}"), 1, now) for number in range(100)])
    looks = sum(each.callcount for each in watch.getstats() if "is_whole" in str(each.code))
    assert looks <= STRANGERS_REMEMBERED_MAX_COUNT


def test_a_stranger_who_asked_for_too_many_is_not_heard_for_a_moment() -> None:
    rates = ReportRates()
    rates.refused(asker(PEER), Instant(0, 0))
    assert rates.is_quiet(asker(PEER), Instant(249, 0))
    assert not rates.is_quiet(asker(ALPHA), Instant(249, 0))
    assert not rates.is_quiet(asker(PEER), Instant(250, 0))
