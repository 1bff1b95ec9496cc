"""Source: the bytes of a capture file, counted as they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

Read: TypeAlias = Callable[[int], bytes]
"""Gives at most the number of bytes asked for; nothing at the end, as a binary file does."""

_SKIPPED_AT_ONCE: Final = 65_536


class CaptureError(ValueError):
    """A capture file that is not what its format says; what came before it was given."""

    def __init__(self, offset: int, problem: str) -> None:
        super().__init__(f"the capture is damaged at byte {offset}: {problem}")
        self.offset = offset
        self.problem = problem


class Source:
    """Reads whole pieces, and knows where it is when one is missing."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._ahead = b""
        self.offset = 0

    def peek(self, size: int) -> bytes:
        """Look at the next bytes without taking them; fewer when the file ends before."""
        while len(self._ahead) < size:
            data = self._read(size - len(self._ahead))
            if not data:
                break
            self._ahead += data
        return self._ahead[:size]

    def take(self, size: int, what: str) -> bytes:
        """Read exactly `size` bytes of `what`."""
        found = [self._ahead[:size]]
        self._ahead = self._ahead[size:]
        missing = size - len(found[0])
        while missing:
            data = self._read(missing)
            if not data:
                raise CaptureError(
                    self.offset, f"{what} ends {missing} bytes early; the file may be cut short"
                )
            found.append(data)
            missing -= len(data)
        self.offset += size
        return found[0] if len(found) == 1 else b"".join(found)

    def skip(self, size: int, what: str) -> None:
        """Pass over `size` bytes of `what` without keeping them."""
        while size:
            step = min(size, _SKIPPED_AT_ONCE)
            self.take(step, what)
            size -= step
