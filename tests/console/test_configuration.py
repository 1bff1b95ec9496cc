"""The configuration in force, on a page of the console."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openmsmq.console import limits
from openmsmq.runtime.config.loading import load
from openmsmq.storage.memory import MemoryStore
from tests.console.people import Person, Place, console_before, forms, text_of
from tests.server_thread import ServerThread

FILE = """
quota_kb = 500000
[alarms.disk]
disk_percent = 99
webhook = "http://127.0.0.1:9/SECRET"
"""
SCRIPT = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("configuration") / "openmsmq.toml"
    found.write_text(FILE, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, file: Path) -> Iterator[Place]:
    """A queue manager with a file, and a directory whose name somebody has chosen badly."""
    folder = tmp_path_factory.mktemp("configured") / SCRIPT
    folder.mkdir()
    flags = {
        "name": "ALPHA",
        "data": str(folder),
        "api_port": 0,
        "api_socket": "none",
        "transfer": False,
        "log_level": "error",
    }
    loaded = load(flags, {"OPENMSMQ_SITE": "SOUTH"}, str(file))
    with (
        ServerThread(loaded.config, store=MemoryStore(), loaded=loaded) as server,
        console_before(folder, server) as found,
    ):
        yield found


def row(person: Person, key: str) -> str:
    """What the page says of one key."""
    page = person.get("/configuration", params={"find": key})
    (found,) = [part for part in page.text.split("<tr>") if f">{key}</th>" in part]
    return " ".join(found.split())


def test_each_value_has_its_source(operator: Person, file: Path) -> None:
    page = operator.get("/configuration")
    assert str(file) in page.text.replace("<wbr>", "")
    for key, value, source in (
        ("quota_kb", "500000", "the file"),
        ("transfer", "false", "the command line"),
        ("site", "&#34;SOUTH&#34;", "the environment"),
        ("log_format", "&#34;text&#34;", "default"),
        ("alarms.disk.disk_percent", "99", "the file"),
    ):
        said = row(operator, key)
        assert f">{value}<" in said
        assert f">{source}<" in said


def test_secrets_are_never_shown(operator: Person) -> None:
    for path in ("/configuration", "/configuration?changed=1", "/configuration?find=webhook"):
        assert "SECRET" not in operator.get(path).text
    assert "http:<wbr>//127.0.0.1:<wbr>9/…" in row(operator, "alarms.disk.webhook")


def test_a_value_is_no_script_and_neither_is_what_is_looked_for(operator: Person) -> None:
    page = operator.get("/configuration", params={"find": SCRIPT})
    assert SCRIPT not in page.text
    assert SCRIPT not in operator.get("/configuration").text
    assert "&lt;img src=x onerror=alert(1)&gt;" in row(operator, "data")
    # The only picture is our own.
    assert forms(operator.get("/configuration")).tags.count("img") == 1


def test_only_what_is_not_as_by_default_if_somebody_wants_that(operator: Person) -> None:
    said = text_of(operator.get("/configuration?changed=1"))
    assert "quota_kb" in said
    assert "log_format" not in said
    assert "No key that is shown has “nothing-like-it”" in text_of(
        operator.get("/configuration?find=nothing-like-it")
    )


def test_what_waits_for_a_restart_stands_beside_what_counts(
    place: Place, operator: Person, file: Path
) -> None:
    assert "only after a restart." not in text_of(operator.get("/configuration"))
    assert "at the next reload" in row(operator, "log_level")
    file.write_text(FILE.replace("500000", "600000"), encoding="utf-8")
    with place.manager() as manager:
        manager.reload()
    try:
        said = row(operator, "quota_kb")
        assert ">500000<" in said
        assert "after a restart" in said
        assert ">600000<" in said
        page = text_of(operator.get("/configuration"))
        assert "1 value of the file counts only after a restart." in page
    finally:
        file.write_text(FILE, encoding="utf-8")
        with place.manager() as manager:
            manager.reload()


def test_a_level_of_the_log_that_somebody_asked_for_says_so(place: Place, operator: Person) -> None:
    with place.manager() as manager:
        manager.set_log_level("warning")
    assert "somebody&#39;s request" in row(operator, "log_level")


def test_a_very_long_configuration_is_cut_and_says_so(
    operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SETTINGS_SHOWN_COUNT", 3)
    page = operator.get("/configuration")
    assert page.text.count('<th scope="row"') == 3
    assert "These are 3 of " in text_of(page)
