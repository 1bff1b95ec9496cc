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
    STRANGERS_REMEMBERED_MAX_COUNT,
)

if TYPE_CHECKING:
    from openmsmq.model.clock import Instant


class _Allowance:
    """What one stranger may still cause: a number of reports and their bytes, which grow again."""

    __slots__ = ("bytes_left", "count_left", "ticks_ms")

    def __init__(self, ticks_ms: int) -> None:
        self.count_left = float(REPORTS_PER_STRANGER_AT_ONCE_COUNT)
        self.bytes_left = float(REPORT_BYTES_PER_STRANGER_AT_ONCE_BYTES)
        self.ticks_ms = ticks_ms

    def take(self, size: int, ticks_ms: int) -> bool:
        passed_s = max(0, ticks_ms - self.ticks_ms) / 1000
        self.ticks_ms = ticks_ms
        self.count_left = min(
            self.count_left + passed_s * REPORTS_PER_STRANGER_PER_S,
            REPORTS_PER_STRANGER_AT_ONCE_COUNT,
        )
        self.bytes_left = min(
            self.bytes_left + passed_s * REPORT_BYTES_PER_STRANGER_PER_S,
            REPORT_BYTES_PER_STRANGER_AT_ONCE_BYTES,
        )
        if self.count_left < 1 or self.bytes_left < size:
            return False
        self.count_left -= 1
        self.bytes_left -= size
        return True


class ReportRates:
    """How many reports each stranger may cause to others than himself."""

    def __init__(self) -> None:
        self._by_address: dict[str, _Allowance] = {}
        self._quiet_until_ms: dict[str, int] = {}

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
        """Forget those whose allowance is whole again."""
        whole_ms = 1000 * max(
            REPORTS_PER_STRANGER_AT_ONCE_COUNT // REPORTS_PER_STRANGER_PER_S,
            REPORT_BYTES_PER_STRANGER_AT_ONCE_BYTES // REPORT_BYTES_PER_STRANGER_PER_S,
        )
        self._by_address = {
            address: allowance
            for address, allowance in self._by_address.items()
            if ticks_ms - allowance.ticks_ms < whole_ms
        }
