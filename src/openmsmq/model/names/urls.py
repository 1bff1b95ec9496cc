"""Paths of URLs that stand for queues of this computer, and which of them may be used.

`/msmq/orders` is a public queue and `/msmq/private$/orders` a private one [MC-MQSRM 2.2]; an alias
stands for one queue, wherever that is. Case does not matter. A queue has a URL only if an operator
says so.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from openmsmq.model.names.direct import DirectFormatName
from openmsmq.model.names.errors import IllegalName
from openmsmq.model.names.local import QueueOnComputer
from openmsmq.model.names.parts import fold
from openmsmq.model.names.paths import PathName

RECEIPTS_QUEUE: Final = "private$\\order_queue$"
"""Where the receipts for transactional messages come; it has a URL as soon as any queue has."""

_AREA: Final = "/msmq/"


_PATH_MAX_CHARACTERS: Final = 512
"""More than any queue needs: what is kept of the paths that strangers send has a bound."""


@lru_cache(maxsize=1_024)
def _queue_in(path: str) -> QueueOnComputer:
    """Return the queue that a path names, or raise `IllegalName`."""
    return DirectFormatName.from_wire_text(f"HTTP://localhost{path}").queue


class UrlMap:
    """Knows the queues that have URLs."""

    def __init__(self, allowed: Sequence[str], aliases: Mapping[str, str]) -> None:
        r"""`allowed` are patterns of queues, such as `private$\orders*`; `aliases` are by path."""
        self._allowed: Final = tuple(map(fold, allowed))
        self._aliases: Final = {
            fold(path): PathName.parse(queue).queue.path_text for path, queue in aliases.items()
        }

    def __bool__(self) -> bool:
        """Whether any queue has a URL."""
        return bool(self._allowed or self._aliases)

    def queue(self, path: str) -> str | None:
        """Return the queue that a path stands for; None if there is none, or it is not allowed.

        The path has no query, and nothing in it is written with `%`.
        """
        alias = self._aliases.get(fold(path))
        if alias is not None:
            return alias
        if not fold(path).startswith(_AREA):
            return None
        if len(path) > _PATH_MAX_CHARACTERS:
            return None
        try:
            named = _queue_in(path)
        except IllegalName:
            return None
        return named.path_text if self.allows(named) else None

    def allows(self, queue: QueueOnComputer) -> bool:
        """Whether a queue has a URL below `/msmq`."""
        if not queue.takes_messages:
            return False
        folded = fold(queue.path_text)
        if folded == RECEIPTS_QUEUE and self:
            return True
        return any(fnmatch.fnmatchcase(folded, pattern) for pattern in self._allowed)
