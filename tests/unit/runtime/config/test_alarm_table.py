"""The table `[alarms]`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from openmsmq.runtime.config.alarm_table import (
    ALARMS_MAX_COUNT,
    WEBHOOK_MAX_CHARACTERS,
    AlarmKeys,
    AlarmRule,
    AlarmSettings,
    Measure,
    read_alarms,
    webhook_problem,
    without_secrets,
)
from openmsmq.runtime.config.errors import ConfigError
from scripts.configuration_tables import reference_rows


def read(text: str) -> tuple[AlarmRule, ...]:
    return read_alarms(tomllib.loads(text).get("alarms", {}), "f.toml").rules


def test_an_alarm_is_named_by_its_table_and_looks_at_what_its_threshold_says() -> None:
    (rule,) = read(r"""
        [alarms]
        queue = 'private$\alarms'
        [alarms.orders-wait]
        queues = "*orders*"
        oldest_s = 300
        for_s = 60
        """)
    assert rule == AlarmRule(
        name="orders-wait",
        measure=Measure.OLDEST_S,
        threshold=300,
        clear=270,
        queues="*orders*",
        for_s=60,
        remind_s=14_400,
        queue=r"private$\alarms",
    )


def test_an_alarm_may_tell_elsewhere_than_the_others() -> None:
    first, second = read("""
        [alarms]
        webhook = "https://hooks.example.org/all"
        remind_s = 60
        [alarms.disk]
        disk_free_bytes = 1000
        webhook = "http://127.0.0.1:8080/disk"
        remind_s = 0
        [alarms.letters]
        dead_letters = 1
        webhook = ""
        """)
    assert (first.webhook, first.remind_s) == ("http://127.0.0.1:8080/disk", 0)
    assert (second.webhook, second.remind_s) == ("", 60)


@pytest.mark.parametrize(
    ("line", "bad", "between", "good"),
    [
        ("messages = 100", 100, 90, 89),
        ("messages = 100\nclear = 100", 100, None, 99),
        ("messages = 100\nclear = 10", 100, 10, 9),
        ("dead_letters = 1", 1, None, 0),
        ("disk_free_bytes = 1000", 1000, 1100, 1101),
        ("disk_free_bytes = 1000\nclear = 5000", 999, 5000, 5001),
    ],
)
def test_an_alarm_is_raised_at_one_value_and_cleared_at_another(
    line: str, bad: int, between: int | None, good: int
) -> None:
    (rule,) = read(f"[alarms.one]\n{line}")
    assert rule.is_bad(bad)
    assert not rule.is_good(bad)
    assert rule.is_good(good)
    assert not rule.is_bad(good)
    if between is not None:
        assert not rule.is_bad(between)
        assert not rule.is_good(between)


@pytest.mark.parametrize(
    ("text", "at", "sentence"),
    [
        ("[alarms.a]\nfor_s = 1", ("alarms", "a"), "has no threshold: give one of oldest_s"),
        ("[alarms.a]\nmessages = 1\nbytes = 1", ("alarms", "a"), "several thresholds"),
        ("[alarms.a]\nmessages = 0", ("alarms", "a", "messages"), ">= 1"),
        ("[alarms.a]\ndisk_percent = 101", ("alarms", "a", "disk_percent"), "<= 100"),
        ("[alarms.a]\nmessage = 1", ("alarms", "a", "message"), "did you mean 'messages'"),
        ("[alarms.a]\nmessages = 5\nclear = 6", ("alarms", "a", "clear"), "give less than"),
        ("[alarms.a]\ndisk_free_bytes = 5\nclear = 4", ("alarms", "a", "clear"), "more than"),
        ("[alarms.a]\ndisk_percent = 5\nqueues = 'x'", ("alarms", "a", "queues"), "leave it out"),
        ("[alarms.'a b']\nmessages = 5", ("alarms", "a b"), "letters, digits"),
        ("[alarms]\nlook_s = 0", ("alarms", "look_s"), ">= 1"),
        ("[alarms]\nlooks = 1", ("alarms", "looks"), "did you mean 'look_s'"),
        ("[alarms]\nqueue = 'beta\\q'", ("alarms", "queue"), "another computer"),
        ("[alarms]\nqueue = 'a/b'", ("alarms", "queue"), "separated"),
        ("[alarms]\nwebhook = 'ftp://x/SECRET'", ("alarms", "webhook"), "https:// or http://"),
        (
            "".join(f"[alarms.a{n}]\nmessages = 1\n" for n in range(ALARMS_MAX_COUNT + 1)),
            ("alarms",),
            f"at most {ALARMS_MAX_COUNT}",
        ),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(
    text: str, at: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        read(text)
    assert refused.value.at == at
    assert sentence in str(refused.value)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "hooks.example.org/x",
        "ftp://hooks.example.org/x",
        "file:///etc/passwd",
        "https:///x",
        "https://user:password@hooks.example.org/x",
        "https://user@hooks.example.org/x",
        "https://hooks.example.org/a b",
        "https://hooks.example.org/a\r\nHost: other",
        "https://hooks.example.org/ä",
        "https://hooks.example.org:0/x",
        "https://hooks.example.org:70000/x",
        "https://hooks.example.org/" + "x" * WEBHOOK_MAX_CHARACTERS,
    ],
)
def test_an_address_that_cannot_be_told_is_refused(address: str) -> None:
    assert webhook_problem(address)


def test_only_the_host_of_a_webhook_is_shown() -> None:
    address: Any = "https://hooks.example.org:8443/services/SECRET?key=SECRET#SECRET"
    assert webhook_problem(address) == ""
    assert without_secrets(address) == "https://hooks.example.org:8443/…"


def test_the_reference_page_has_all_keys() -> None:
    page = (Path(__file__).parents[4] / "docs/reference/configuration.md").read_text("utf-8")
    for kind in (AlarmSettings, AlarmKeys):
        assert reference_rows(kind) in page
