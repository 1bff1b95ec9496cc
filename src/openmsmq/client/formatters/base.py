"""What a formatter is, and the one error it may raise."""

from __future__ import annotations

from typing import Protocol


class FormatterError(ValueError):
    """A value that cannot be written as a body, or a body that cannot be read as a value."""


class Formatter(Protocol):
    """Writes values as bodies and reads them back.

    Bodies come from anywhere: `read` gives a value or raises `FormatterError`, and never makes an
    object of a class that the body names.
    """

    @property
    def name(self) -> str:
        """The name by which `open(..., formatter=name)` finds it."""

    def write(self, value: object) -> tuple[int, bytes]:
        """Return the body type and the body."""

    def read(self, body_type: int, body: bytes) -> object:
        """Return the value of a body."""
