"""What goes wrong between Spark and queues, said so that the reader knows what to do."""

from __future__ import annotations

import re
from typing import Final

_SAID: Final = re.compile(r"openmsmq\.spark\.errors\.\w+: (?P<text>[^\n]+)")


class SparkSideError(Exception):
    """A sentence about an option, a queue or a queue manager, and what to do about it.

    Spark carries it from its workers inside a longer text; `sentence_in` finds it there.
    """


class BadOption(SparkSideError):
    """An option is missing, unknown or has a value that makes no sense."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"option {option}: {problem}")


class DataLost(SparkSideError):
    """Messages that a stream was to read are gone. [option failOnDataLoss]"""


class QueueProblem(SparkSideError):
    """A queue, or the queue manager that has it, does not do what was asked."""


class QueueTaken(QueueProblem):
    """A queue is another reader's, or another checkpoint's of the same reader."""


class QueueGone(QueueProblem):
    """A queue is not there, or not there any more."""


class DatabaseProblem(SparkSideError):
    """A database does not take a batch."""


class TableProblem(SparkSideError):
    """A table cannot be written, or is not what it was."""


def sentence_in(text: str) -> str | None:
    """Find the sentence of one of these errors in what Spark says about a failure."""
    found = _SAID.search(text)
    return None if found is None else found["text"].strip()
