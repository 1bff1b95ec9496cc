"""What must hold beside an adversary: closed queues stay closed, names mean who has them, and
nothing grows beyond its room.

What happens to honest messages is for the books: they know no excuse but those without an
adversary.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from openmsmq.sim.forgeries import is_invented, mark_in
from openmsmq.sim.plan import CLOSED, CLOSED_TRANSACTIONAL
from openmsmq.sim.violation import Violation

if TYPE_CHECKING:
    from openmsmq.sim.adversary import Adversary
    from openmsmq.sim.node import Node
    from openmsmq.sim.store_watch import Lying, Shelf

_SHUT: Final = frozenset({CLOSED, CLOSED_TRANSACTIONAL})
_HOST: Final = re.compile(r"direct=(?:tcp|os):([^\\]+)\\|private=([0-9a-f-]+)\\")
_SLACK_BYTES: Final = 32_768
"""Who has room takes one message more than fits, and copies the quota of which is not the same."""
_SOURCE: Final = slice(16, 32)


class HostileWatch:
    """Looks at what comes onto the disks of honest nodes."""

    def __init__(self, adversary: Adversary) -> None:
        self._adversary = adversary
        self._nobodys: dict[str, bool] = {}

    def came(self, node: Node, entry: Lying) -> None:
        """Something came into a queue."""
        path = entry.shelf.path
        if path in _SHUT and entry.shelf.role == "queue":
            raise Violation(f"{path} of {node.name} takes signed messages only, and got another")
        if entry.shelf.role == "queue" and entry.message is None:
            self._check_name(node, entry)
        self._check_room(node, entry)

    def _check_room(self, node: Node, entry: Lying) -> None:
        """All that a node keeps is within its quota, whatever it is and for whom."""
        size_bytes = node.world.books.watches[node.index].size_bytes
        if size_bytes > node.config.quota_kb * 1024 + _SLACK_BYTES:
            raise Violation(
                f"{node.name} keeps {size_bytes} bytes of messages, and may keep "
                f"{node.config.quota_kb} KB; the last came into {entry.shelf.path}"
            )

    def _check_name(self, node: Node, entry: Lying) -> None:
        number = mark_in(entry.packet)
        forgery = None if number is None else self._adversary.forgeries.get(number)
        if forgery is None or not forgery.is_barred:
            return
        # Reports about a forgery show its body, under a name and a class of their own.
        source = entry.packet[_SOURCE]
        if source == forgery.source and entry.message_class == forgery.message_class:
            name = next(each.name for each in node.world.nodes if each.identifier == source)
            raise Violation(
                f"{entry.shelf.path} of {node.name} got a message in the name of {name}, which the "
                f"adversary made (x{forgery.number})"
            )

    def is_hostile_report(self, packet: bytes) -> bool:
        """Whether an acknowledgment tells of what the adversary has sent, or is from it."""
        return is_invented(packet[_SOURCE]) or mark_in(packet) is not None

    def leads_nowhere(self, shelf: Shelf) -> bool:
        """Whether a queue is for the adversary or for nobody: what is in it need not arrive."""
        known = self._nobodys.get(shelf.path)
        if known is None:
            found = _HOST.match(shelf.path.casefold())
            known = found is not None and (found[1] or found[2]) not in self._honest()
            self._nobodys[shelf.path] = known
        return known

    def _honest(self) -> set[str]:
        return {
            text.casefold()
            for node in self._adversary.world.nodes
            for text in (node.address, node.name, str(node.identifier))
        }
