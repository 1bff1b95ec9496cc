r"""Path names, `computer\queue`: how people and directories name queues. [MQMQ 2.1.1]"""

from __future__ import annotations

from typing import Final, Self

import msgspec

from openmsmq.model.names.errors import IllegalPathName, read_part
from openmsmq.model.names.local import QueueOnComputer, read_written_queue
from openmsmq.model.names.parts import check_computer_name, fold, keyword

LOCAL_COMPUTER: Final = "."
"""The computer name that means the computer at hand."""

LOCAL_COMPUTERS: Final = (LOCAL_COMPUTER, "localhost")
"""All computer names with that meaning, folded."""


class PathName(msgspec.Struct, frozen=True, gc=False):
    r"""A computer and a queue on it: `host\orders`, `host\private$\orders`. [MQMQ 2.1.1]

    Beyond the grammar of the specification, `parse` takes names without a computer as names on
    the local one: `orders` is `.\orders`, and `private$\orders` is `.\private$\orders`. So no
    computer can be called `private$`.
    """

    computer: str
    queue: QueueOnComputer

    def __post_init__(self) -> None:
        check_computer_name(self.computer, IllegalPathName)
        if fold(self.computer) == "private$":
            raise IllegalPathName(self.computer, 0, "a computer cannot be called private$")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a path name; `IllegalPathName` tells what is wrong with it."""
        stop = text.find("\\")
        if stop < 0 or keyword(text[:stop]) == "private$":
            return cls(LOCAL_COMPUTER, _read_local(text))
        computer = text[:stop]
        read_part(text, 0, stop, _check_computer)
        queue = read_part(
            text, stop + 1, len(text), lambda part: read_written_queue(part, "\\", IllegalPathName)
        )
        return cls(computer, queue)

    @property
    def key(self) -> str:
        """What is equal for path names that name the same queue, whatever their case."""
        return f"{fold(self.computer)}\\{self.queue.key}"

    @property
    def is_local(self) -> bool:
        """Whether the name says that the queue is on the local computer."""
        return fold(self.computer) in LOCAL_COMPUTERS

    def __str__(self) -> str:
        return f"{self.computer}\\{self.queue.path_text}"


def _check_computer(text: str) -> None:
    position = text.find("=")
    if position >= 0:
        raise IllegalPathName(
            text, position, "a path name has no '=': this looks like a format name"
        )
    check_computer_name(text, IllegalPathName)


def _read_local(text: str) -> QueueOnComputer:
    """Read a queue of the local computer, named without a computer."""
    position = text.find("/")
    if position >= 0:
        # With a computer, a slash is a letter like any other. Without one it is most likely a
        # backslash typed by habit, and taking it for a letter would name another queue.
        raise IllegalPathName(text, position, r"the parts of a path name are separated by '\'")
    return read_written_queue(text, "\\", IllegalPathName)
