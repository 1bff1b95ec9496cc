"""The fuzzer's targets, run shortly and alike each time; `make fuzz` runs them for long."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from openmsmq.capture.conversation import ProblemItem, follow
from openmsmq.capture.frames import read_frames_of
from openmsmq.model.names import IllegalName, PathName, parse_format_name
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.packets import decode, encode
from tests.fuzz import seeds as seed_inputs
from tests.fuzz.mutation import REPAIRS, mutate, repair_capture, repair_packet
from tests.fuzz.replay import read_input
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

MUTATIONS = 1_500
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
    repair = REPAIRS.get(name)
    for _ in range(MUTATIONS):
        data = mutate(random.choice(found), random.choice(found), random)
        TARGETS[name](data if repair is None else repair(data, random))


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_what_was_found_once_stays_mended(path: Path) -> None:
    """One file for each finding, in hexadecimal; its name begins with that of the target."""
    target = path.stem.partition("-")[0]
    TARGETS[target](read_input(path))


def test_the_seeds_of_packets_decode() -> None:
    """A seed that is refused at the door would start the fuzzer outside."""
    golden = seed_inputs.golden_packets()
    assert all(decodes(seed) for seed in seed_inputs.packets() if seed not in golden)
    assert sum(map(decodes, golden)) >= 6


def test_the_seeds_of_captures_hold_what_can_be_followed() -> None:
    for seed in seed_inputs.captures():
        items = list(follow(read_frames_of(seed)))
        assert items
        assert not [item for item in items if isinstance(item, ProblemItem)]


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
