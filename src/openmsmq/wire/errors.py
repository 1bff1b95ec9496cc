"""What can be wrong with bytes, or with values that are to become bytes."""

from __future__ import annotations


class DecodeError(ValueError):
    """Bytes that are not what the specification says. Decoders raise nothing else.

    The peer's fault: a session that meets one is closed, and nothing else suffers.
    """

    def __init__(self, where: str, offset: int, problem: str) -> None:
        super().__init__(f"{where} at offset {offset}: {problem}")
        self.where = where
        self.offset = offset
        self.problem = problem


class EncodeError(ValueError):
    """Values that no packet can carry: the caller's fault, found before anything is sent."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem
