"""Public queues and distribution lists by name, as the directory knows them. [MQDMPR 3.1.7.1.26]"""

from __future__ import annotations

from openmsmq.manager.config import DirectoryConfig
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.turn.counters import Counters
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.errors import (
    IllegalPathName,
    InsufficientResources,
    NoDirectory,
    QueueNotFound,
)
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.names import (
    DirectFormatName,
    DistributionListFormatName,
    FormatName,
    LocalQueueName,
    MultipleFormatName,
    PathName,
    PublicFormatName,
    QueueOnComputer,
    SingleFormatName,
    parse_format_name,
)
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import QueueProperties


def meant_private(computer: str) -> str:
    """Return what a path name with this computer was perhaps meant to be.

    Who forgets the $ of `private$`, or lets a shell take it away, names a computer.
    """
    return (
        "; private queues are named private$\\..., with a $" if fold(computer) == "private" else ""
    )


class Published:
    """Looks names up in the directory."""

    def __init__(self, config: DirectoryConfig, copy: DirectoryCopy, counters: Counters) -> None:
        self._role = config.role
        self._copy = copy
        self._counters = counters
        self._members_max = config.list_members_max
        self.missed_count = 0
        """How often a name was not in the directory, as far as it is known here."""

    def missing(self, detail: str) -> QueueNotFound:
        """Return the error for a name that the directory would know, and does not as it is here."""
        self.missed_count += 1
        return QueueNotFound(detail)

    def require_directory(self, detail: str) -> None:
        """Refuse what only a directory can tell if there is none."""
        if self._role is DirectoryRole.NONE:
            raise NoDirectory(detail)

    def is_elsewhere(self, name: PublicFormatName) -> bool:
        """Whether the directory knows a queue of another computer by this name."""
        queue = self._copy.image.queues.get(name.queue)
        return queue is not None and queue.manager != self._counters.identifier

    def owner_of(self, name: PublicFormatName) -> Guid:
        """Return the queue manager of a public queue; nil if it is not known."""
        queue = self._copy.image.queues.get(name.queue)
        return NIL_GUID if queue is None else queue.manager

    def queue_of(self, name: PublicFormatName) -> QueueProperties | None:
        """Return what the directory says of a queue."""
        return self._copy.image.queues.get(name.queue)

    def foreign_computer(self, name: PublicFormatName) -> str:
        """Return the computer of a queue in a system that does not speak MSMQ; empty for others.

        [MQOD 3.9]
        """
        image = self._copy.image
        queue = image.queues.get(name.queue)
        owner = None if queue is None else image.managers.get(queue.manager)
        return owner.computer_name if owner is not None and owner.foreign else ""

    def name_of(self, path: PathName) -> PublicFormatName:
        """Find the public queue of a path name."""
        self.require_directory(
            f"{path}: public queues are found in a directory, and there is none"
            f"{meant_private(path.computer)}"
        )
        assert isinstance(path.queue, LocalQueueName)
        found = self._copy.image.queue_at(path.computer, path.queue.name)
        if found is None:
            raise self.missing(f"{path}: the directory has no such public queue")
        return PublicFormatName(found.identifier, path.queue.journal)

    def new_name(self, queue: QueueOnComputer, shown: str) -> LocalQueueName:
        """Require that a queue of this name can be created."""
        if not isinstance(queue, LocalQueueName):
            raise IllegalPathName(f"{shown}: system queues are always there and cannot be created")
        if queue.journal or queue.subqueue is not None:
            raise IllegalPathName(f"{shown}: journals and subqueues come with their queue")
        if not queue.private:
            self.require_directory(
                rf"{shown}: public queues need a directory; private$\{queue.name} does not"
            )
        return queue

    def remote_name(self, path: PathName) -> FormatName:
        """Return the format name of a queue of another computer."""
        return self.name_of(path) if is_public(path.queue) else DirectFormatName.from_path(path)

    def expanded(self, names: tuple[SingleFormatName, ...]) -> list[FormatName]:
        """Return the queues that names stand for, with those of lists in place of the lists.

        A queue that is in several lists is given once, and a list that contains itself ends there.
        [MQDMPR 3.1.7.3.8]
        """
        found: dict[str, FormatName] = {}
        seen: set[Guid] = set()
        waiting: list[FormatName] = list(reversed(names))
        while waiting:
            name = waiting.pop()
            if not isinstance(name, DistributionListFormatName):
                found.setdefault(fold(str(name)), name)
                if len(found) > self._members_max:
                    raise InsufficientResources(
                        f"the list stands for more than {self._members_max} queues"
                    )
            elif name.distribution_list not in seen:
                seen.add(name.distribution_list)
                if len(seen) > self._members_max:
                    raise InsufficientResources(
                        f"the list contains more than {self._members_max} lists"
                    )
                waiting += reversed(self._members(name))
        if not found:
            raise QueueNotFound("the distribution list has no members")
        return list(found.values())

    def _members(self, name: DistributionListFormatName) -> list[FormatName]:
        self.require_directory(f"{name}: lists are found in a directory, and there is none")
        listed = self._copy.image.lists.get(name.distribution_list)
        if listed is None:
            raise self.missing(f"{name}: the directory has no such distribution list")
        members: list[FormatName] = []
        for text in listed.members:
            member = parse_format_name(text)
            members += member.elements if isinstance(member, MultipleFormatName) else [member]
        return members


def is_public(name: QueueOnComputer) -> bool:
    """Whether a name is that of a public queue."""
    return isinstance(name, LocalQueueName) and not name.private
