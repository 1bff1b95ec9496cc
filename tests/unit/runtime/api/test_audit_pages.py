"""The audit log is read from its end, page by page, over all of its files, and never as a whole."""

from __future__ import annotations

import json
import os
from itertools import chain
from pathlib import Path

import pytest

from openmsmq.runtime.api import audit_pages
from openmsmq.runtime.api.audit_pages import read_page


def write(path: Path, *numbers: int) -> None:
    path.write_text("".join(f'{{"n": {number}}}\n' for number in numbers))


def all_pages(path: Path, count: int, wanted: str = "") -> list[list[str]]:
    pages = []
    before = ""
    for _ in range(10_000):
        page = read_page(path, before, count, wanted)
        pages.append(page.lines)
        before = page.before
        if not before:
            return pages
    raise AssertionError("it never ends")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "audit.log"
    write(path, *range(20, 30))
    write(tmp_path / "audit.log.1", *range(10, 20))
    write(tmp_path / "audit.log.2", *range(10))
    return path


@pytest.mark.parametrize("count", [1, 3, 7, 10, 30, 100])
@pytest.mark.parametrize("read_bytes", [20, 33, 1000])
def test_every_line_comes_once_the_newest_first(
    log: Path, count: int, read_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_pages, "AUDIT_READ_MAX_BYTES", read_bytes)
    pages = all_pages(log, count)
    assert list(chain.from_iterable(pages)) == [
        f'{{"n": {number}}}' for number in reversed(range(30))
    ]
    assert max(map(len, pages)) <= count


@pytest.mark.parametrize("wanted", ["q\\NAME", "ü", "Q\\name"])
def test_lines_are_looked_for_by_a_text_as_people_write_it(log: Path, wanted: str) -> None:
    line = json.dumps({"on": r"q\name", "who": "ü"})
    log.write_text(f'{{"n": 1}}\n{line}\n{{"n": 2}}\n')
    assert list(chain.from_iterable(all_pages(log, 50, wanted))) == [line]


def test_a_page_goes_on_where_it_was_when_the_log_has_turned_over(log: Path) -> None:
    first = read_page(log, "", 4, "")
    for number in (2, 1):
        os.replace(f"{log}.{number}", f"{log}.{number + 1}")
    os.replace(log, f"{log}.1")
    write(log, 99)
    assert read_page(log, first.before, 2, "").lines == ['{"n": 25}', '{"n": 24}']


def test_what_is_gone_ends_the_pages(log: Path) -> None:
    assert read_page(log, "123456789:5", 4, "").lines == []
    assert read_page(log, "nonsense", 4, "").lines == []
    assert read_page(log, ":", 1, "").before == ""


def test_without_a_log_there_is_none(tmp_path: Path) -> None:
    assert not read_page(None, "", 4, "").is_kept
    assert read_page(tmp_path / "audit.log", "", 4, "").lines == []


def test_pipes_and_links_are_not_followed(log: Path) -> None:
    os.mkfifo(f"{log}.3")
    os.symlink("/etc/hostname", f"{log}.4")
    assert len(list(chain.from_iterable(all_pages(log, 100)))) == 30


def test_a_line_without_end_is_not_read_for_ever(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_pages, "AUDIT_READ_MAX_BYTES", 16)
    log.write_bytes(b"x" * 200)
    assert len(all_pages(log, 10)) < 100
