"""What cannot be decoded goes to the poison queue once, however its range is read and split."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

import openmsmq as mq
from openmsmq.spark.decode.record_batches import Failure
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.source.options import read_source_options
from openmsmq.spark.source.poison import dispose
from openmsmq.spark.source.queue_range import QueueRange

SOURCE, POISON = r"private$\in", r"private$\poison"
COUNT = 6


@pytest.fixture
def qm(qm: mq.QueueManager) -> mq.QueueManager:
    qm.create_queue(SOURCE)
    qm.create_queue(POISON, transactional=True)
    return qm


@pytest.fixture
def failures(qm: mq.QueueManager) -> list[Failure]:
    """Messages of the source, of all priorities, as if none could be decoded."""
    source = qm.queue(SOURCE)
    for number in range(COUNT):
        source.send(str(number), priority=number, recoverable=True)
    found = sorted(source.browse(), key=lambda message: int(str(message.body)))
    return [
        Failure(row, message.lookup_id, "broken", str(message.body).encode())
        for row, message in enumerate(found)
    ]


def set_aside(
    qm: mq.QueueManager, failures: Sequence[Failure], address: str = "", **options: str
) -> None:
    """Let a task dispose of messages, as if it had read the range that they are in."""
    given = {"queue": SOURCE, "onError": "queue", "poisonQueue": POISON} | options
    part = QueueRange(address or qm.settings.address, SOURCE, 0, 1 << 56)
    dispose(read_source_options(given), qm, part, tuple(failures))


def poisoned(qm: mq.QueueManager) -> list[object]:
    return [message.body_bytes for message in qm.queue(POISON).browse()]


def test_each_message_is_set_aside_once_however_the_range_is_split(
    qm: mq.QueueManager, failures: list[Failure]
) -> None:
    for size in (4, 1, 2, 3, 6):
        for first in range(0, COUNT, size):
            set_aside(qm, failures[first : first + size])
    # The queue manager is the same under another address.
    set_aside(qm, failures, "127.0.0.99:1802")
    assert poisoned(qm) == [failure.packet for failure in failures]
    assert qm.in_doubt() == []


def test_attempts_that_run_side_by_side_set_a_message_aside_once(
    qm: mq.QueueManager, failures: list[Failure], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slower one has looked before the quicker one came, and is not told of its message."""
    with monkeypatch.context() as patch:
        patch.setattr(type(qm), "queries", lambda *_, **__: [])
        for _ in range(2):
            set_aside(qm, failures)
    assert poisoned(qm) == [failure.packet for failure in failures]
    assert qm.in_doubt() == []


def test_names_of_messages_that_were_completed_are_forgotten_and_over(
    qm: mq.QueueManager, failures: list[Failure]
) -> None:
    source = qm.queue(SOURCE)
    fourth = failures[3].lookup_id & ((1 << 56) - 1)
    source.reserve("spark", 0)
    set_aside(qm, failures[:4])
    assert len(qm.queries(prefix="poison ")) == 4
    source.complete("spark", fourth)
    set_aside(qm, failures[3:])
    # The one that was known, and is still there, and those that are new.
    assert len(qm.queries(prefix="poison ")) == 3
    assert poisoned(qm) == [failure.packet for failure in failures]
    with pytest.raises((QueueProblem, mq.MsmqError), match="is over"):
        set_aside(qm, failures[:1])
    assert poisoned(qm) == [failure.packet for failure in failures]


def test_another_reader_sets_its_own_aside(qm: mq.QueueManager, failures: list[Failure]) -> None:
    for reader, _ in itertools.product(("one", "two"), range(2)):
        set_aside(qm, failures, reader=reader)
    assert len(poisoned(qm)) == 2 * COUNT
