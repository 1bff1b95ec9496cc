"""One place for all tests of a file: a queue manager and a console."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.console.people import Person, Place, opened_place

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with opened_place(tmp_path_factory.mktemp("alpha")) as found:
        yield found


@pytest.fixture(scope="module")
def operator(place: Place) -> Person:
    """An administrator who is signed in."""
    return place.person()


@pytest.fixture
def queue(place: Place) -> str:
    name = rf"private$\q{next(_NUMBERS)}"
    with place.manager() as manager:
        manager.create_queue(name)
    return name


@pytest.fixture
def ledger(place: Place) -> str:
    """A transactional queue."""
    name = rf"private$\t{next(_NUMBERS)}"
    with place.manager() as manager:
        manager.create_queue(name, transactional=True)
    return name
