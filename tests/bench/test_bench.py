"""The benches run, judge by their bars, and say how to repeat them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from bench.__main__ import main
from bench.codec import MESSAGE, fixed_fields
from bench.measure import Effort, Figure, Timing, ratio, time_in_turn
from openmsmq.wire.packets import encode

QUICK = ["--rounds", "3", "--slice-ms", "0.05"]


def ten_times(bar: float) -> Iterator[Figure]:
    timings = time_in_turn(
        {"one": "total(range(20))", "ten": "total(range(20)); " * 10},
        {"total": sum},
        Effort(rounds=20, slice_s=0.0005),
    )
    yield ratio("planted", "x", timings["ten"], timings["one"], bar)


def slow(_: Effort) -> Iterator[Figure]:
    """Ten times as slow as allowed."""
    return ten_times(bar=1)


def fast(_: Effort) -> Iterator[Figure]:
    """Far below its bar."""
    return ten_times(bar=1000)


def test_the_codec_bench_prints_its_bars_and_how_to_repeat_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["codec", *QUICK])
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("decode", "encode", "outline", "bar 25", "bar 5"))
    assert "python -m bench codec --rounds 3 --slice-ms 0.05" in printed


def test_a_slow_function_fails_its_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slow"], {"slow": slow, "fast": fast}) == 1
    assert "FAIL" in capsys.readouterr().out


def test_a_fast_function_meets_its_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fast"], {"slow": slow, "fast": fast}) == 0
    assert "pass" in capsys.readouterr().out


def test_without_names_all_benches_run_and_one_failure_is_enough(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([], {"slow": slow, "fast": fast}) == 1
    printed = capsys.readouterr().out
    assert "FAIL" in printed
    assert "pass" in printed


def test_the_figures_come_as_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"], {"slow": slow, "fast": fast}) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] is False
    assert report["benches"]["fast"]["command"] == "python -m bench fast"
    (figure,) = report["benches"]["slow"]["figures"]
    assert (figure["bar"], figure["passed"]) == (1, False)
    assert figure["low"] <= figure["high"]


def test_the_benches_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"], {"slow": slow}) == 0
    assert capsys.readouterr().out.split(maxsplit=1) == ["slow", "Ten times as slow as allowed.\n"]


def test_an_unknown_bench_is_refused_with_the_names_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["fats"], {"fast": fast})
    assert "no bench 'fats'; there are: fast" in capsys.readouterr().err


def test_a_ratio_is_that_of_the_minima_with_the_spread_of_the_rounds() -> None:
    figure = ratio("r", "x", Timing([30.0, 20.0, 80.0]), Timing([10.0, 10.0, 20.0]), bar=2.0)
    assert (figure.value, figure.low, figure.high, figure.passed) == (2.0, 2.0, 4.0, True)
    assert not ratio("r", "x", Timing([21.0]), Timing([10.0]), bar=2.0).passed


def test_the_bare_structure_reads_the_fixed_fields_at_their_places() -> None:
    data = encode(MESSAGE)
    fields = fixed_fields(data).unpack_from(data)
    assert len(fields) == 6 + 6 + 12
    assert fields[4] == len(data)
    assert fields[6] == MESSAGE.user.source
    assert fields[10] == MESSAGE.user.message_number
    assert fields[16] == MESSAGE.properties.body_type
    assert fields[18] == len(MESSAGE.properties.body)
