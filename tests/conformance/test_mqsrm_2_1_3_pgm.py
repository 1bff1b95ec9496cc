"""The profile of PGM: its constants, measured in virtual time, and its rules. [MQSRM 2.1.3.1]

The numbers are those of the specification, written out; none is read from the product.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Address
from random import Random
from typing import Final

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.outputs import SendMulticast
from openmsmq.model.queue import AccessMode
from openmsmq.protocol.pgm.gaps import Gaps
from openmsmq.protocol.pgm.outputs import Delivered, Profile
from openmsmq.protocol.pgm.receiver import Receiver
from openmsmq.wire.pgm.options import Fragment, Options
from openmsmq.wire.pgm.packets import Data, Nak, Packet, PacketType, SourceId, Spm
from tests.conformance.marks import shows
from tests.strategies.messages import Draft
from tests.unit.manager.office import Office
from tests.unit.protocol.pgm.network import GROUP, GSI, PROFILE, SENDER, Network

HERE: Final = IPv4Address(SENDER).packed
THERE: Final = IPv4Address(GROUP.address).packed
CLARIFIED: Final = "MQSRM-2.1.3.1"
KIB64: Final = 65_536
FAST: Final = Profile(rate_bytes_per_s=0)


def asks(network: Network, *numbers: int) -> None:
    """Ask the source for repairs."""
    body = Nak(PacketType.NAK, numbers[0], HERE, THERE, Options(further=numbers[1:]))
    network.source.received(body, network.now_ms)


def repairs(network: Network) -> list[tuple[int, Data]]:
    return [
        (at_ms, packet.body)
        for at_ms, packet in network.sent
        if isinstance(packet.body, Data) and packet.body.is_repair
    ]


def trails(network: Network) -> list[tuple[int, int]]:
    """When which trailing edge was first told."""
    found: dict[int, int] = {}
    for at_ms, packet in network.sent:
        if isinstance(packet.body, Spm | Data):
            found.setdefault(packet.body.trail, at_ms)
    return [(at_ms, trail) for trail, at_ms in found.items()]


def times_of_asking(spoil: Callable[[Packet, str], list[int]]) -> tuple[list[int], int]:
    """When a receiver asked for the second packet of three, which never comes; and what it lost."""
    network = Network(profile=FAST)
    network.spoil = spoil
    network.send([b"1", b"2", b"3"])
    network.run(60)
    (host,) = network.hosts
    return sorted({at_ms for at_ms, _ in host.sent}), host.lost


def without_second(packet: Packet, _to: str) -> list[int]:
    """A network on which the second packet is never seen, and no repair."""
    body = packet.body
    return [] if isinstance(body, Data) and body.number == 2 else [1]


def without_requests(packet: Packet, to: str) -> list[int]:
    """The same, and nothing reaches the source."""
    return [] if to == SENDER else without_second(packet, to)


def steps(times: list[int]) -> list[int]:
    return [second - first for first, second in itertools.pairwise(times)]


# The constants. Each function measures one of them.


def txw_max_rte() -> None:
    network = Network()
    network.send([bytes(10_000)] * 100)
    network.run(10)
    # 70 kilobytes per second, and one bucket at the beginning.
    assert 686_000 <= network.sent_bytes <= 702_800


def token_bucket() -> None:
    network = Network()
    network.send([b"x"])
    network.run(30)
    before, network.sent_bytes = network.now_ms, 0
    network.send([b"x"] * 1_000)
    network.run(0)
    at_once = sum(len(packet.encode()) + 20 for at_ms, packet in network.sent if at_ms == before)
    # 40 ms of 70 kilobytes per second; what is kept free is for the longest packet.
    assert 2_800 - 1_496 <= at_once <= 2_800


def txw_secs() -> None:
    network = Network(hosts=0)
    network.send([b"first"])
    for now_s, count in ((250, 1), (301, 1)):
        network.run(now_s - network.now_ms / 1_000)
        asks(network, 1)
        network.run(0.5)
        assert len(repairs(network)) == count


def txw_adv() -> None:
    network = Network(hosts=0)
    for _ in range(500):
        network.send([b"x"])
        network.run(1)
    told = trails(network)[1:]
    # 15 % of 300 s: so often it moves, by all that is 15 % nearer to its end then.
    times = [round(at_ms / 1_000) for at_ms, _ in told]
    assert times
    assert {time % 45 for time in times} <= {0, 1}
    assert {second[1] - first[1] for first, second in itertools.pairwise(told)} <= {44, 45, 46}


def ihb() -> None:
    network = Network()
    network.send([b"only"])
    network.run(80)
    times = [at_ms for at_ms, packet in network.sent if isinstance(packet.body, Spm)]
    # Those before are about the beginning, and the one that ends the data.
    assert steps(times)[4:10] == [1_000, 2_000, 4_000, 8_000, 15_000, 15_000]


def nak_rpt_ivl() -> None:
    times, _ = times_of_asking(without_requests)
    # 0.75 s, and what is waited for others before each request.
    assert {step // 10 for step in steps(times)} <= set(range(76, 81))


def nak_ncf_retries() -> None:
    times, lost = times_of_asking(without_requests)
    assert (len(times), lost) == (10, 1)


def nak_rdata_ivl() -> None:
    times, _ = times_of_asking(without_second)
    assert {step // 10 for step in steps(times)} <= set(range(201, 206))


def nak_data_retries() -> None:
    times, lost = times_of_asking(without_second)
    assert (len(times), lost) == (10, 1)


@pytest.mark.parametrize(
    "measure",
    [
        txw_max_rte,
        txw_secs,
        txw_adv,
        ihb,
        nak_rpt_ivl,
        nak_rdata_ivl,
        nak_ncf_retries,
        nak_data_retries,
        token_bucket,
    ],
)
@shows(CLARIFIED, 1)
def test_the_constants_are_those_of_the_table(measure: Callable[[], None]) -> None:
    measure()


# The rest of the section.


@shows(CLARIFIED, 2)
def test_who_misses_something_waits_from_10_to_50_ms_at_random() -> None:
    gaps = Gaps(Random(1))
    for number in range(2_000):
        gaps.add(number, 0)
    found: Counter[int] = Counter()
    for now_ms in range(100):
        asking, _ = gaps.due(now_ms, 2_000)
        found[now_ms] += len(asking)
    assert sum(found.values()) == 2_000
    assert {now_ms for now_ms, count in found.items() if count} == set(range(10, 51))
    # None is much likelier than another: 49 each.
    assert max(found.values()) < 100


@shows(CLARIFIED, 4)
@pytest.mark.parametrize("count", [1, 6, 10, 30])
def test_a_repair_waits_as_the_formula_says(count: int) -> None:
    network = Network(hosts=0, profile=FAST)
    network.send([b"x"] * count)
    network.run(1)
    now_ms = network.now_ms
    asks(network, *range(1, count + 1))
    network.run(1)
    delays = {body.number: at_ms - now_ms for at_ms, body in repairs(network)}
    assert delays == {
        number: (number - 1) * 60 // (count - 1 + 1) for number in range(1, count + 1)
    }


@shows(CLARIFIED, 5)
def test_the_window_moves_on_every_45_s_and_not_between() -> None:
    network = Network(hosts=0)
    for _ in range(450):
        network.send([b"x"])
        network.run(1)
    moved = [at_ms for at_ms, _ in trails(network)[1:]]
    # The first is told at once, with the next packet; nothing is old enough before.
    assert [round(at_ms / 1_000) for at_ms in moved] == [270, 315, 360, 405]


@shows(CLARIFIED, 6)
def test_the_window_moves_no_further_than_what_was_asked_for() -> None:
    network = Network(hosts=0, profile=Profile(rate_bytes_per_s=0))
    network.send([b"%d" % number for number in range(1, 11)])
    network.run(269.995)
    # Half a hundredth of a second before it moves over all of them; a repair takes longer.
    asks(network, 5)
    network.run(1)
    ((at_ms, repair),) = repairs(network)
    assert at_ms > 270_000
    assert (repair.number, repair.trail, repair.data) == (5, 5, b"5")
    # Those before are gone, those after are not.
    asks(network, 4)
    asks(network, 6)
    network.run(1)
    assert [body.number for _, body in repairs(network)] == [5, 6]
    network.run(46)
    assert trails(network)[-1][1] == 11


@shows(CLARIFIED, 7)
@pytest.mark.parametrize(("length", "comes"), [(KIB64, True), (KIB64 + 1, False)])
def test_nothing_longer_than_64_kilobytes_is_put_together(length: int, comes: bool) -> None:
    receiver = Receiver(PROFILE, Random(1), 0)
    receiver.listen(GROUP)
    parts = [bytes(1_000)] * (length // 1_000) + [bytes(length % 1_000)]
    for place, part in enumerate(parts):
        options = Options(Fragment(1, place * 1_000, length))
        body = Data(1 + place, 1, part, options=options)
        receiver.received(Packet(SourceId(GSI, 1), GROUP.port, body), SENDER, GROUP, place)
    payloads = [each.payload for each in receiver.take_outputs() if isinstance(each, Delivered)]
    assert payloads == ([bytes(length)] if comes else [])


@shows(CLARIFIED, 7)
def test_nothing_longer_than_64_kilobytes_is_sent() -> None:
    office = Office()
    manager = office.driver.manager
    manager.multicast_problem("", office.driver.now)
    handle = office.open(f"MULTICAST={GROUP}", AccessMode.SEND)
    # Its envelope takes more than one kilobyte, and less than two.
    for size, is_sent in ((KIB64 - 2_048, True), (KIB64 - 512, False)):
        office.driver.request(office.app, api.Send(handle, [Draft(body=bytes(size)).packet()]))
        sent = [each for each in office.driver.node.take() if isinstance(each, SendMulticast)]
        assert [len(each.payload) <= KIB64 for each in sent] == [True] * is_sent
    office.driver.pump()
    asked = api.Send(handle, [Draft(body=bytes(KIB64)).packet()])
    assert office.error(asked) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
