"""The fuzzer's targets, run shortly and alike each time; `make fuzz` runs them for long."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from openmsmq.analysis.events import Anomaly
from openmsmq.analysis.kinds import OF_BYTES
from openmsmq.analysis.traffic import follow
from openmsmq.api import messages as api
from openmsmq.api.framing import FrameReader
from openmsmq.manager.outputs import Disconnect
from openmsmq.model.names import IllegalName, PathName, parse_format_name
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.packets import decode, encode
from tests.fuzz import plain, run
from tests.fuzz import seeds as seed_inputs
from tests.fuzz.desk import OPENING, new_desk
from tests.fuzz.manager_seeds import requests
from tests.fuzz.mutation import mutate, repair_capture, repair_packet
from tests.fuzz.registry import COUNT_SHARES, NAMES, SHARES, SLOW, Loaded, load, seeds
from tests.fuzz.replay import read_input
from tests.strategies.captures import frames_of

MUTATIONS = 1_500
MUTATIONS_OF_SLOW = 300
TARGETS = {name: load(name).target for name in NAMES}
REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.hex"))

each_target = pytest.mark.parametrize("name", TARGETS)


@each_target
def test_a_target_finds_nothing_in_its_seeds(name: str) -> None:
    found = seeds(name)
    assert found
    for seed in found:
        TARGETS[name](seed)


@each_target
def test_a_target_finds_nothing_in_changed_seeds(name: str) -> None:
    random = Random(name)
    found = seeds(name)
    repair = load(name).repair
    for _ in range(MUTATIONS_OF_SLOW if name in SLOW else MUTATIONS):
        data = mutate(random.choice(found), random.choice(found), random)
        TARGETS[name](data if repair is None else repair(data, random))


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_what_was_found_once_stays_mended(path: Path) -> None:
    """One file for each finding, in hexadecimal; its name begins with that of the target."""
    target = path.stem.partition("-")[0]
    TARGETS[target](read_input(path))


def test_every_target_has_seeds_and_shares_are_of_targets() -> None:
    assert all(seeds(name) for name in NAMES)
    assert SHARES.keys() | COUNT_SHARES.keys() | SLOW <= set(NAMES)


def test_the_seeds_of_calls_have_every_request_and_most_are_granted() -> None:
    """A seed whose requests are all refused would start the fuzzer outside."""
    asked: set[type] = set()
    granted: set[type] = set()
    for seed in seeds("calls"):
        desk = new_desk()
        desk.manager.connected(1)
        reader: FrameReader[api.Call] = FrameReader(api.Call)
        reader.feed(seed)
        for call in reader.items():
            asked.add(type(call.request))
            desk.manager.request(1, call.id, call.request, desk.now)
            desk.work()
            if not isinstance(desk.answers.get((1, call.id)), api.Failed):
                granted.add(type(call.request))
    assert asked == {type(request) for request in requests()} - {api.Hello}
    assert len(granted) >= len(asked) * 0.6, asked - granted


def test_the_seeds_of_sessions_are_taken() -> None:
    kept = 0
    for seed in seeds("sessions"):
        desk = new_desk()
        desk.manager.session_accepted(2, "10.0.0.9", desk.now)
        opening = OPENING if seed[0] & 1 else b""
        desk.manager.session_data(2, opening + seed[2:], desk.now)
        desk.work()
        kept += Disconnect(2) not in desk.outputs
    assert kept >= 20


def test_the_seeds_of_packets_decode() -> None:
    """A seed that is refused at the door would start the fuzzer outside."""
    golden = seed_inputs.golden_packets()
    assert all(decodes(seed) for seed in seed_inputs.packets() if seed not in golden)
    assert sum(map(decodes, golden)) >= 6


def test_the_seeds_of_captures_hold_what_can_be_followed() -> None:
    for seed in seed_inputs.captures():
        items = list(follow(frames_of(seed)))
        assert items
        assert not [item for item in items if isinstance(item, Anomaly) and item.kind in OF_BYTES]


def test_the_seeds_of_names_are_names() -> None:
    for seed in seed_inputs.names():
        refused = 0
        for parse in (parse_format_name, PathName.parse):
            try:
                parse(seed.decode())
            except IllegalName:
                refused += 1
        assert refused < 2 or b"TCP:host" in seed or b"SPX:" in seed or b"OS:fe80" in seed


def decodes(data: bytes) -> bool:
    try:
        decode(data)
    except DecodeError:
        return False
    return True


def test_a_repaired_packet_gets_past_the_base_header() -> None:
    random = Random(1)
    longer = encode(seed_inputs.messages()[0]) + b"more"
    assert not decodes(longer)
    repaired = [repair_packet(longer, random) for _ in range(40)]
    assert sum(map(decodes, repaired)) >= 20


def test_a_repaired_capture_has_blocks_of_one_size() -> None:
    random = Random(1)
    capture = seed_inputs.captures()[0]
    broken = capture[:-4] + b"\0\0\0\1"
    repaired = [repair_capture(broken, random) for _ in range(20)]
    assert capture in repaired


@pytest.mark.parametrize(
    ("name", "broken"),
    [("packets", b"\x10"), ("names", b"\xff")],
)
def test_a_decoder_that_raises_another_error_is_found(
    name: str, broken: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(_: object) -> None:
        raise IndexError("index out of range")

    monkeypatch.setattr("tests.fuzz.targets.decode", careless)
    monkeypatch.setattr("tests.fuzz.targets.parse_format_name", careless)
    with pytest.raises(IndexError):
        TARGETS[name](broken)


def test_an_encoding_that_loses_a_byte_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = encode(seed_inputs.messages()[0])
    monkeypatch.setattr("tests.fuzz.targets.encode", lambda _: seed[:-1])
    with pytest.raises(AssertionError):
        TARGETS["packets"](seed)


@pytest.mark.parametrize("flaw", ["raises", "hangs"])
def test_plain_runs_find_what_breaks_and_keep_it(
    flaw: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def target(data: bytes) -> None:
        if len(data) % 5 == 0 and flaw == "raises":
            raise IndexError("index out of range")
        while len(data) % 5 == 0:
            pass

    monkeypatch.setattr(plain, "INPUT_TIMEOUT_S", 0.01)
    loaded = Loaded(target, list, None)
    assert plain.run(loaded, [b"an input"], 200, Random(1), tmp_path) == 10
    kept = list(tmp_path.iterdir())
    assert kept
    assert all(len(path.read_bytes()) % 5 == 0 for path in kept)
    assert "IndexError" in (printed := capfd.readouterr().err) or "TooSlow" in printed


def test_a_number_of_inputs_is_shared_out_among_all_targets() -> None:
    works = run.by_count(list(NAMES), 10_000_000)
    assert sum(work.guided + work.plain for work in works) >= 10_000_000
    assert {work.target for work in works} == set(NAMES)
    assert all(0 < work.guided < work.plain for work in works)
