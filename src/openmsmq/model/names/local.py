r"""The second half of path names and direct format names: which queue on its computer.

What stands after the computer is the same in both, but for letter case: `private$\orders` in a
path name is `PRIVATE$\orders` in a format name. So both hold the values of this module.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from openmsmq.model.names.errors import IllegalName, IllegalPathName, read_part
from openmsmq.model.names.parts import check_queue_name, check_subqueue_name, fold, keyword


class SystemQueue(enum.Enum):
    """The queues that every computer has, by the word that names them. [MQMQ 2.1.2, 2.2.11]"""

    JOURNAL = "JOURNAL"
    DEAD_LETTER = "DEADLETTER"
    TRANSACTIONAL_DEAD_LETTER = "DEADXACT"

    @property
    def key(self) -> str:
        """What is equal for texts that name the same queue of a computer."""
        return self.path_text

    @property
    def path_text(self) -> str:
        """How the queue stands in a path name, after the computer and a backslash."""
        return f"system$;{self.value.lower()}"

    def format_text(self, separator: str = "\\") -> str:  # noqa: ARG002 -- as LocalQueueName has it
        """How the queue stands in a direct format name, after the address."""
        return f"SYSTEM$;{self.value}"

    @property
    def is_read_only(self) -> bool:
        """Whether only the queue manager itself puts messages here: always."""
        return True

    @property
    def takes_messages(self) -> bool:
        """Whether applications can send to it: never."""
        return False


class LocalQueueName(msgspec.Struct, frozen=True, gc=False):
    r"""A queue on its computer: `orders`, `private$\orders;rejected`, `orders;journal`.

    [MQMQ 2.1.1, 2.1.2]
    """

    name: str
    private: bool = False
    subqueue: str | None = None
    journal: bool = False

    def __post_init__(self) -> None:
        check_queue_name(self.name, IllegalPathName)
        if self.subqueue is not None:
            check_subqueue_name(self.subqueue, IllegalPathName)

    @property
    def key(self) -> str:
        """What is equal for texts that name the same queue of a computer."""
        return fold(self.path_text)

    @property
    def path_text(self) -> str:
        """How the queue stands in a path name, after the computer and a backslash."""
        return self._text("private$\\", ";journal")

    def format_text(self, separator: str = "\\") -> str:
        """How the queue stands in a direct format name, after the address and a separator."""
        return self._text(f"PRIVATE${separator}", ";JOURNAL")

    def _text(self, private: str, journal: str) -> str:
        subqueue = "" if self.subqueue is None else f";{self.subqueue}"
        area = private if self.private else ""
        return f"{area}{self.name}{subqueue}{journal if self.journal else ''}"

    @property
    def is_read_only(self) -> bool:
        """Whether only the queue manager itself puts messages here: so it is with journals."""
        return self.journal

    @property
    def takes_messages(self) -> bool:
        """Whether applications can send to it: into subqueues messages are only moved."""
        return not self.journal and self.subqueue is None


QueueOnComputer = LocalQueueName | SystemQueue

_SYSTEM_QUEUES: Final = {queue.value.lower(): queue for queue in SystemQueue}
_DOTNET_JOURNAL: Final = "\\journal$"
_DOTNET_SYSTEM_QUEUES: Final = {
    "journal$": SystemQueue.JOURNAL,
    "deadletter$": SystemQueue.DEAD_LETTER,
    "xactdeadletter$": SystemQueue.TRANSACTIONAL_DEAD_LETTER,
}


def read_written_queue(text: str, separators: str, error: type[IllegalName]) -> QueueOnComputer:
    r"""Read a queue as `read_queue` does, or as the paths of .NET programs have it.

    They write `orders\Journal$` for a journal, and `Journal$`, `Deadletter$` and `XactDeadletter$`
    for the queues that every computer has. Packets never do, so only what people and programs
    write is read like this.
    """
    found = _DOTNET_SYSTEM_QUEUES.get(keyword(text))
    if found is not None:
        return found
    stop = len(text) - len(_DOTNET_JOURNAL)
    if stop > 0 and keyword(text[stop:]) == _DOTNET_JOURNAL and keyword(text[:stop]) != "private$":
        queue = read_part(text, 0, stop, lambda part: read_queue(part, separators, error))
        if not isinstance(queue, LocalQueueName) or queue.journal:
            raise error(text, stop, "a journal has no journal of its own")
        return LocalQueueName(queue.name, queue.private, queue.subqueue, journal=True)
    return read_queue(text, separators, error)


def read_queue(text: str, separators: str, error: type[IllegalName]) -> QueueOnComputer:
    r"""Read what follows the computer and its separator; `separators` is `\`, in URLs also `/`."""
    area = keyword(text[:8])
    if area.startswith("system$") and text[7:8] in (";", ""):
        return read_part(text, 7, len(text), lambda part: _read_system_queue(part, error))
    private = area == "private$" and text[8:9] != "" and text[8] in separators
    start = 9 if private else 0
    stop = _find(text, ";", start)
    name = text[start:stop]
    read_part(text, start, stop, lambda part: check_queue_name(part, error))
    subqueue, journal = read_part(
        text, stop, len(text), lambda suffixes: _read_suffixes(suffixes, error)
    )
    return LocalQueueName(name, private, subqueue, journal)


def _read_system_queue(text: str, error: type[IllegalName]) -> SystemQueue:
    queue = _SYSTEM_QUEUES.get(keyword(text[1:]))
    if queue is None:
        position = min(1, len(text))
        raise error(text, position, "after SYSTEM$ comes ;JOURNAL, ;DEADLETTER or ;DEADXACT")
    return queue


def _read_suffixes(text: str, error: type[IllegalName]) -> tuple[str | None, bool]:
    """Read an optional subqueue and an optional `;JOURNAL`, in this order."""
    if not text:
        return None, False
    if keyword(text) == ";journal":
        return None, True
    stop = _find(text, ";", 1)
    read_part(text, 1, stop, lambda part: check_subqueue_name(part, error))
    if stop < len(text) and keyword(text[stop:]) != ";journal":
        raise error(text, stop, "after a subqueue name only ;JOURNAL can follow")
    return text[1:stop], stop < len(text)


def _find(text: str, character: str, start: int) -> int:
    position = text.find(character, start)
    return len(text) if position < 0 else position
