"""How many reports strangers may cause: each has an allowance, which grows again with time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.manager.askers import Asker
from openmsmq.model.limits import (
    REPORT_BYTES_PER_STRANGER_AT_ONCE_BYTES,
    REPORT_BYTES_PER_STRANGER_PER_S,
    REPORTS_PAUSE_MS,
    REPORTS_PER_STRANGER_AT_ONCE_COUNT,
    REPORTS_PER_STRANGER_PER_S,
    STRANGERS_LOOKED_THROUGH_EVERY_MS,
    STRANGERS_REMEMBERED_MAX_COUNT,
)
from openmsmq.protocol.bucket import Bucket

if TYPE_CHECKING:
    from openmsmq.model.clock import Instant


class _Allowance:
    """What one stranger may still cause: a number of reports and their bytes, which grow again."""

    __slots__ = ("bytes", "count")

    def __init__(self, now_ms: int) -> None:
        self.count = Bucket(REPORTS_PER_STRANGER_PER_S, REPORTS_PER_STRANGER_AT_ONCE_COUNT, now_ms)
        self.bytes = Bucket(
            REPORT_BYTES_PER_STRANGER_PER_S, REPORT_BYTES_PER_STRANGER_AT_ONCE_BYTES, now_ms
        )

    def take(self, size: int, now_ms: int) -> bool:
        has_both = self.count.has(1, now_ms) and self.bytes.take(size, now_ms)
        return has_both and self.count.take(1, now_ms)

    def is_whole(self, now_ms: int) -> bool:
        return not any(one.used_thousandths(now_ms) for one in (self.count, self.bytes))


class ReportRates:
    """How many reports each stranger may cause to others than himself."""

    def __init__(self) -> None:
        self._by_address: dict[str, _Allowance] = {}
        self._quiet_until_ms: dict[str, int] = {}
        self._looked_ms = -STRANGERS_LOOKED_THROUGH_EVERY_MS

    def is_quiet(self, asker: Asker, now: Instant) -> bool:
        """Whether a stranger has just asked for one too many, so that none is even made."""
        due_ms = self._quiet_until_ms.get(asker.address) if self._quiet_until_ms else None
        if due_ms is None:
            return False
        if now.ticks_ms < due_ms:
            return True
        del self._quiet_until_ms[asker.address]
        return False

    def refused(self, asker: Asker, now: Instant) -> None:
        """Note that a stranger has asked for one too many: to make reports costs time."""
        if len(self._quiet_until_ms) >= STRANGERS_REMEMBERED_MAX_COUNT:
            self._quiet_until_ms.clear()
        self._quiet_until_ms[asker.address] = now.ticks_ms + REPORTS_PAUSE_MS

    def take(self, asker: Asker, size: int, now: Instant) -> bool:
        """Count a report on a stranger's word; says whether it may be sent."""
        address = asker.address
        found = self._by_address.get(address)
        if found is None:
            if len(self._by_address) >= STRANGERS_REMEMBERED_MAX_COUNT:
                self._forget_quiet(now.ticks_ms)
            if len(self._by_address) >= STRANGERS_REMEMBERED_MAX_COUNT:
                address = ""
            found = self._by_address.setdefault(address, _Allowance(now.ticks_ms))
        return found.take(size, now.ticks_ms)

    def _forget_quiet(self, ticks_ms: int) -> None:
        """Forget those whose allowance is whole again, but do not look at all for each stranger."""
        if ticks_ms - self._looked_ms < STRANGERS_LOOKED_THROUGH_EVERY_MS:
            return
        self._looked_ms = ticks_ms
        self._by_address = {
            address: allowance
            for address, allowance in self._by_address.items()
            if not allowance.is_whole(ticks_ms)
        }
