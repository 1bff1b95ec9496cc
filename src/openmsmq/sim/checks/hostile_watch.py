"""What must hold beside an adversary: closed queues stay closed, names mean who has them, and
nothing grows beyond its room.

What happens to honest messages is for the books: they know no excuse but those without an
adversary.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from openmsmq.model.limits import INFINITE_S
from openmsmq.model.queue import QueueRole
from openmsmq.sim.hostile.forgeries import is_invented, mark_in
from openmsmq.sim.hostile.overheard import ORDER_LABEL
from openmsmq.sim.scenarios.scenario import CLOSED, CLOSED_TRANSACTIONAL
from openmsmq.sim.violation import Violation
from openmsmq.wire import message_bytes

if TYPE_CHECKING:
    from openmsmq.sim.checks.store_watch import Lying, Shelf
    from openmsmq.sim.hostile.adversary import Adversary
    from openmsmq.sim.node import Node

_SHUT: Final = frozenset({CLOSED, CLOSED_TRANSACTIONAL})
_HOST: Final = re.compile(r"direct=(?:tcp|os):([^\\]+)\\|private=([0-9a-f-]+)\\")
_REPORTS_SHARE: Final = 8
"""The part of the quota that reports take at most that wait to leave."""
_SEQUENCES_SHARE: Final = 8
"""The part of the quota that records of sequences take at most."""
_OUTGOING_PER_STRANGER: Final = 100
"""Outgoing queues that one address may cause."""
_OUTGOING_LATER: Final = 50
"""Those that are made when a message is received: nobody knows then on whose word that is."""
_SLACK_BYTES: Final = 32_768
"""Who has room takes one message more than fits, and copies the quota of which is not the same."""


class HostileWatch:
    """Looks at what comes onto the disks of honest nodes."""

    def __init__(self, adversary: Adversary) -> None:
        self._adversary = adversary
        self._nobodys: dict[str, bool] = {}

    def came(self, node: Node, entry: Lying) -> None:
        """Something came into a queue."""
        path = entry.shelf.path
        if path in _SHUT and entry.shelf.role is QueueRole.APPLICATION:
            raise Violation(f"{path} of {node.name} takes signed messages only, and got another")
        if entry.shelf.role is QueueRole.APPLICATION and entry.message is None:
            self._check_name(node, entry)
        elif (
            entry.shelf.role is QueueRole.OUTGOING
            and entry.message_class
            and self.is_unwanted(entry)
        ):
            self._check_lifetime(node, entry)
            self._check_reports(node)
        self._check_room(node, entry)

    def stored(self, node: Node) -> None:
        """A batch is on a disk: what it keeps on the word of others is within its bounds."""
        watch, quota_bytes = node.world.books.disks.watches[node.index], node.config.quota_kb * 1024
        sequence_bytes = sum(watch.sequences.values())
        if quota_bytes and sequence_bytes > quota_bytes // _SEQUENCES_SHARE:
            raise Violation(
                f"{node.name} has {len(watch.sequences)} sequences of others in {sequence_bytes} "
                f"bytes, with a quota of {node.config.quota_kb} KB"
            )
        strange = sum(self.leads_nowhere(watch.shelves[number]) for number in watch.leaving)
        if strange > _OUTGOING_PER_STRANGER * self._adversary.scenario.hideouts + _OUTGOING_LATER:
            raise Violation(
                f"{node.name} has {strange} outgoing queues that lead nowhere, for an adversary "
                f"with {self._adversary.scenario.hideouts} addresses"
            )

    def _check_reports(self, node: Node) -> None:
        """What waits to tell the adversary something takes little room.

        What another node tells it through this one is that node's: it is within its bounds there.
        """
        report_bytes = sum(
            len(entry.packet)
            for entry in node.world.books.disks.watches[node.index].entries.values()
            if entry.shelf.role is QueueRole.OUTGOING
            and entry.message_class
            and ORDER_LABEL not in entry.packet
            and message_bytes.source(entry.packet) == node.identifier
            and self.is_unwanted(entry)
        )
        if 0 < node.config.quota_kb * 1024 // _REPORTS_SHARE < report_bytes:
            raise Violation(
                f"{node.name} keeps {report_bytes} bytes of reports for the adversary, with a "
                f"quota of {node.config.quota_kb} KB"
            )

    def _check_lifetime(self, node: Node, entry: Lying) -> None:
        """What a node tells somebody who may never hear it gives way by itself."""
        if entry.deadline_s >= INFINITE_S and message_bytes.source(entry.packet) == node.identifier:
            raise Violation(
                f"{node.name} keeps something of class {entry.message_class:#06x} for "
                f"{entry.shelf.path} for ever, because the adversary asked for it"
            )

    def _check_room(self, node: Node, entry: Lying) -> None:
        """All that a node keeps is within its quota, whatever it is and for whom."""
        size_bytes = node.world.books.disks.watches[node.index].size_bytes
        if 0 < node.config.quota_kb * 1024 < size_bytes - _SLACK_BYTES:
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
        source = message_bytes.source(entry.packet)
        if source == forgery.source and entry.message_class == forgery.message_class:
            name = next(each.name for each in node.world.nodes if each.identifier == source)
            raise Violation(
                f"{entry.shelf.path} of {node.name} got a message in the name of {name}, which the "
                f"adversary made (x{forgery.number})"
            )

    def is_hostile_report(self, packet: bytes) -> bool:
        """Whether an acknowledgment tells of what the adversary has sent, or is from it."""
        return is_invented(message_bytes.source(packet)) or mark_in(packet) is not None

    def is_unwanted(self, entry: Lying) -> bool:
        """Whether what waits is for nobody, or tells of the adversary: it need not arrive."""
        if self.leads_nowhere(entry.shelf):
            return True
        if entry.message is not None:
            return False
        return mark_in(entry.packet) is not None or is_invented(
            message_bytes.correlation_id(entry.packet)
        )

    def leads_nowhere(self, shelf: Shelf) -> bool:
        """Whether a queue is for the adversary or for nobody."""
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
