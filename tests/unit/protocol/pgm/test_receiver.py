"""Receivers beside a source, on a network that loses, doubles and turns; and strangers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.protocol.pgm import gaps, limits, window
from openmsmq.protocol.pgm.gaps import Gaps
from openmsmq.protocol.pgm.outputs import Delivered, Group, Profile, Transmit
from openmsmq.protocol.pgm.receiver import Receiver
from openmsmq.protocol.pgm.serial import after
from openmsmq.protocol.pgm.source import Source
from openmsmq.wire.pgm.options import Options
from openmsmq.wire.pgm.packets import Data, Nak, Packet, PacketType, SourceId, Spm, decode
from tests.unit.protocol.pgm.network import GROUP, GSI, SENDER, Network

FAST: Final = Profile(rate_bytes_per_s=700_000)
PATH: Final = bytes(4)


def payloads(count: int, seed: int = 0) -> list[bytes]:
    random = Random(seed)
    return [b"%06d" % number + random.randbytes(random.randrange(4_000)) for number in range(count)]


def check(network: Network, sent: list[bytes]) -> None:
    """Nothing is missing, nothing came twice, and the order is that of sending."""
    for host in network.hosts:
        assert [each[:6] for each in host.payloads] == [each[:6] for each in sent]
        assert host.payloads == sent
        assert (host.lost, host.receiver.held_bytes) == (0, 0)
        assert host.receiver.next_wake_ms is not None


@settings(deadline=None, max_examples=20)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([1, 30, 200]),
)
def test_nothing_is_missing_nothing_is_doubled_and_the_order_is_kept(
    seed: int, first: int, loss: float, doubled: float, delay_ms: int
) -> None:
    network = Network(
        2, seed=seed, loss=loss, doubled=doubled, delay_ms=delay_ms, profile=FAST, first=first
    )
    # Who hears nothing of the beginning does not know of it; that is another test's.
    network.spoil = lambda _packet, _to: [1]
    network.run(0.1)
    network.spoil = network._spoil  # noqa: SLF001
    sent = payloads(30, seed)
    network.send(sent)
    network.run(90)
    check(network, sent)


def test_many_receivers_that_miss_the_same_ask_little_more_than_one() -> None:
    network = Network(20, profile=FAST)
    network.run(0.1)

    def spoil(packet: Packet, _to: str) -> list[int]:
        body = packet.body
        if isinstance(body, Data) and not body.is_repair and body.number % 10 == 5:
            return []
        return [1]

    network.spoil = spoil
    sent = payloads(60)
    network.send(sent)
    network.run(10)
    check(network, sent)
    missed = network.source.sent_count // 10 + 1
    asked = sum(host.receiver.asked_count for host in network.hosts)
    assert asked <= 4 * missed
    assert network.kinds(network.sent)["RDATA"] <= missed + 1


def test_who_comes_late_begins_with_what_is_sent_now() -> None:
    network = Network(2, profile=FAST)
    # Whoever begins hears one packet after the other: the first is where it begins.
    network.spoil = lambda _packet, _to: [1]
    late = network.hosts[1]
    late.receiver.stop(GROUP)
    network.send([b"before"])
    network.run(1)
    late.receiver.listen(GROUP)
    network.send([b"now", bytes(5_000)])
    network.run(1)
    assert late.payloads == [b"now", bytes(5_000)]
    assert late.lost == 0
    assert late.sent == []


def test_a_question_goes_to_the_source_and_to_the_neighbours() -> None:
    receiver = Receiver(FAST, Random(1), 0)
    receiver.listen(GROUP)
    source = SourceId(GSI, 1)
    # The source says that it is somewhere else: nobody is asked there.
    victim = bytes([192, 0, 2, 1])
    receiver.received(Packet(source, 8_001, Spm(1, 1, 0, victim)), SENDER, GROUP, 0)
    receiver.received(Packet(source, 8_001, Data(3, 1, b"x")), SENDER, GROUP, 0)
    receiver.wake(50)
    near, far = (each for each in receiver.take_outputs() if isinstance(each, Transmit))
    assert (near.address, near.hops) == (SENDER, None)
    assert (far.address, far.hops) == (GROUP.address, 1)
    found = decode(near.data)
    assert isinstance(found.body, Nak)
    assert (found.source, found.port, found.body.numbers) == (source, 8_001, (1, 2))
    assert near.data == far.data


def test_a_flood_of_lies_about_the_lead_makes_us_ask_at_a_bounded_rate() -> None:
    receiver = Receiver(FAST, Random(1), 0)
    receiver.listen(GROUP)
    source = SourceId(GSI, 1)
    receiver.received(Packet(source, 8_001, Spm(0, 1, 0, PATH)), SENDER, GROUP, 0)
    asked = 0
    for now_ms in range(0, 4_000, 10):
        told = Spm(now_ms + 1, 1, 2**30, PATH)
        receiver.received(Packet(source, 8_001, told), SENDER, GROUP, now_ms)
        receiver.wake(now_ms)
        asked += len(receiver.take_outputs())
    assert asked <= 2 * limits.PGM_NAKS_PER_S * 5


SPAN: Final = limits.PGM_SPAN_MAX_COUNT


def tells(receiver: Receiver, source: int, trail: int, lead: int, now_ms: int) -> None:
    """Let a source with an address of its own say where its window stands."""
    packet = Packet(SourceId(GSI, source), GROUP.port, Spm(now_ms, trail, lead, PATH))
    receiver.received(packet, f"10.2.0.{source}", GROUP, now_ms)


@pytest.mark.skipif(
    not gaps.__file__.endswith(".py"), reason="what is compiled cannot be listened to"
)
@pytest.mark.parametrize(
    ("sources", "per_s"),
    [(1, limits.PGM_GAPS_PER_ADDRESS_PER_S), (40, limits.PGM_GAPS_PER_S)],
)
def test_short_packets_make_little_work_however_much_they_say_is_missing(
    sources: int, per_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = Counter[int]()
    right = Gaps.add

    def add(self: Gaps, number: int, now_ms: int) -> None:
        noted[now_ms // 1_000] += 1
        right(self, number, now_ms)

    monkeypatch.setattr(Gaps, "add", add)
    receiver = Receiver(FAST, Random(1), 0)
    receiver.listen(GROUP)
    for source in range(sources):
        tells(receiver, source, 1, 0, 0)
    for now_ms in range(20, 10_000, 20):
        for source in range(sources):
            # It repairs nothing that it spoke of before, and is as far ahead as one can be.
            first = 1 + now_ms * SPAN
            tells(receiver, source, first, first + SPAN - 1, now_ms)
        receiver.take_outputs()
    # What there may be at once, and one packet more than that.
    assert per_s * 9 <= noted.total() <= per_s * 11 + SPAN


def test_a_source_that_missed_much_is_heard_in_the_end() -> None:
    receiver = Receiver(FAST, Random(1), 0)
    receiver.listen(GROUP)
    tells(receiver, 1, 1, 0, 0)
    lead = 3 * limits.PGM_GAPS_PER_ADDRESS_PER_S
    for now_ms in range(500, 6_000, 500):
        tells(receiver, 1, 1, lead, now_ms)
    (found,) = receiver._sources.values()  # noqa: SLF001
    assert found.window.missing_count == lead


def test_all_sources_together_are_asked_at_a_bounded_rate_and_each_has_its_turn() -> None:
    receiver = Receiver(FAST, Random(1), 0)
    receiver.listen(GROUP)
    asked: Counter[str] = Counter()
    lead = limits.PGM_GAPS_PER_S // 64
    for source in range(60):
        tells(receiver, source, 1, 0, 0)
        tells(receiver, source, 1, lead, 1)
    for now_ms in range(10, 5_000, 10):
        receiver.wake(now_ms)
        for each in receiver.take_outputs():
            assert isinstance(each, Transmit)
            if each.address != GROUP.address:
                asked[each.address] += 1
    assert asked.total() <= limits.PGM_NAKS_OF_ALL_PER_S * 6
    assert len(asked) == 60
    assert min(asked.values()) > 0.5 * max(asked.values())


def heard(receiver: Receiver, source: int, address: str, now_ms: int, number: int = 1) -> None:
    packet = Packet(SourceId(GSI, source), GROUP.port, Data(number, 1, b"x"))
    receiver.received(packet, address, GROUP, now_ms)


def test_a_flood_of_sources_puts_out_nobody_who_is_heard() -> None:
    receiver = Receiver(FAST, Random(1), 0)
    receiver.listen(GROUP)
    delivered = 0
    for step in range(2_000):
        now_ms = step * 100
        if step % 10 == 0:
            heard(receiver, 1, SENDER, now_ms, 1 + step // 10)
        # Strangers with an address each, and some that say to be many on one.
        heard(receiver, 2 + step, f"10.1.{step // 250}.{step % 250}", now_ms)
        heard(receiver, 30_000 + step, SENDER, now_ms)
        outputs = receiver.take_outputs()
        delivered += sum(
            isinstance(each, Delivered) and each.source == SourceId(GSI, 1) for each in outputs
        )
        assert receiver.sources_count <= limits.PGM_SOURCES_MAX_COUNT
    assert delivered == 200
    # Nothing of the first was taken for the beginning of another.
    heard(receiver, 1, SENDER, 200_000, 1)
    assert receiver.take_outputs() == []
    assert receiver.duplicate_count == 1


def test_when_all_are_heard_a_newcomer_waits_until_one_falls_silent() -> None:
    receiver = Receiver(Profile(sources_max=3), Random(1), 0)
    receiver.listen(GROUP)
    for each in range(3):
        heard(receiver, each, f"10.0.0.{each}", 0)
    heard(receiver, 9, "10.0.0.9", 30_000)
    assert receiver.refused_sources_count == 1
    for each in range(1, 3):
        heard(receiver, each, f"10.0.0.{each}", 50_000, 2)
    receiver.take_outputs()
    heard(receiver, 9, "10.0.0.9", 60_000)
    assert len(receiver.take_outputs()) == 1
    assert receiver.sources_count == 3


def test_a_packet_from_another_address_than_its_source_is_nobodys() -> None:
    receiver = Receiver(FAST, Random(1), 0)
    receiver.listen(GROUP)
    heard(receiver, 1, SENDER, 0, 1)
    heard(receiver, 1, "10.6.6.6", 0, 2)
    assert receiver.foreign_count == 1
    assert len(receiver.take_outputs()) == 1


def test_groups_that_nobody_listens_to_are_not_followed() -> None:
    receiver = Receiver(FAST, Random(1), 0)
    receiver.listen(GROUP)
    packet = Packet(SourceId(GSI, 1), 9, Data(1, 1, b"x"))
    receiver.received(packet, SENDER, Group(GROUP.address, 9), 0)
    heard(receiver, 1, SENDER, 0)
    receiver.stop(GROUP)
    heard(receiver, 2, SENDER, 0)
    assert receiver.sources_count == 0
    assert receiver.next_wake_ms is None


def test_all_sources_together_have_so_much_room_and_no_more() -> None:
    receiver = Receiver(Profile(sources_bytes=1_000), Random(1), 0)
    receiver.listen(GROUP)
    for source in range(20):
        for number in (1, 3, 4):
            body = Data(number, 1, bytes(90))
            packet = Packet(SourceId(GSI, source), GROUP.port, body)
            receiver.received(packet, f"10.0.0.{source}", GROUP, 0)
    assert 900 < receiver.held_bytes <= 1_000
    receiver.stop(GROUP)
    assert receiver.held_bytes == 0


def test_more_than_the_rate_of_a_source_is_as_if_it_were_lost() -> None:
    receiver = Receiver(Profile(source_rate_bytes_per_s=1_000), Random(1), 0)
    receiver.listen(GROUP)
    for number in range(1, 21):
        body = Data(number, 1, bytes(100))
        receiver.received(Packet(SourceId(GSI, 1), GROUP.port, body), SENDER, GROUP, 0)
    assert receiver.over_rate_count == 10
    assert len(receiver.take_outputs()) == 10


def test_a_reset_ends_it_at_once() -> None:
    for body in (
        Spm(9, 1, 3, PATH, Options(reset=True)),
        Data(9, 1, b"", False, Options(reset=True)),
    ):
        receiver = Receiver(FAST, Random(1), 0)
        receiver.listen(GROUP)
        for number in (1, 3):
            heard(receiver, 1, SENDER, 0, number)
        receiver.received(Packet(SourceId(GSI, 1), GROUP.port, body), SENDER, GROUP, 0)
        receiver.take_outputs()
        heard(receiver, 1, SENDER, 0, 2)
        receiver.wake(10_000)
        assert receiver.take_outputs() == []
        assert receiver.held_bytes == 0


def test_who_is_silent_for_as_long_as_a_window_is_forgotten() -> None:
    receiver = Receiver(FAST, Random(1), 0)
    receiver.listen(GROUP)
    heard(receiver, 1, SENDER, 0)
    for now_ms in range(0, 500_000, 1_000):
        receiver.wake(now_ms)
    assert receiver.sources_count == 0


# Defects that were planted, and what must notice them.


def no_repair(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Source, "_promise", lambda *_: False)


def no_order(patch: pytest.MonkeyPatch) -> None:
    def step(self: window.Window) -> None:
        held = self._held.pop(self._next, None)
        self._next = after(self._next)
        if held is not None:
            self.held_bytes -= len(held.data)
            self.payloads.insert(0, held.data)

    patch.setattr(window.Window, "_step", step)


def doubles_pass(patch: pytest.MonkeyPatch) -> None:
    right = window.Window.data

    def data(self: window.Window, packet: Data, has_room: bool, now_ms: int, **more: bool) -> None:
        before = self.duplicate_count
        right(self, packet, has_room, now_ms, **more)
        if self.duplicate_count > before and packet.options.fragment is None:
            self.payloads.append(packet.data)

    patch.setattr(window.Window, "data", data)


def gives_up_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limits, "PGM_NAK_RETRY_MAX_COUNT", 1)


def deaf_to_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(window.Window, "told", lambda *_, **__: None)


@pytest.mark.parametrize(
    "plant", [no_repair, no_order, doubles_pass, gives_up_at_once, deaf_to_the_end]
)
def test_a_planted_defect_is_noticed(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    noticed = 0
    for seed in range(3):
        network = Network(2, seed=seed, loss=0.2, doubled=0.1, delay_ms=30, profile=FAST)
        network.spoil = lambda _packet, _to: [1]
        network.run(0.1)
        network.spoil = network._spoil  # noqa: SLF001
        sent = [each[:1_000] for each in payloads(40, seed)]
        network.send(sent)
        network.run(60)
        try:
            check(network, sent)
        except AssertionError:
            noticed += 1
    assert noticed >= 2


def test_a_nak_of_another_receiver_is_no_confirmation() -> None:
    """Who only overhears asks itself in the end, if the source does not answer."""
    receiver = Receiver(FAST, Random(1), 0)
    receiver.listen(GROUP)
    for number in (1, 3):
        heard(receiver, 1, SENDER, 0, number)
    receiver.take_outputs()
    for now_ms in range(0, 3_000, 10):
        body = Nak(PacketType.NAK, 2, bytes([10, 0, 0, 1]), bytes([239, 1, 1, 1]))
        receiver.received(Packet(SourceId(GSI, 1), 8_001, body), "10.6.6.6", GROUP, now_ms)
        receiver.wake(now_ms)
    assert any(isinstance(each, Transmit) for each in receiver.take_outputs())
