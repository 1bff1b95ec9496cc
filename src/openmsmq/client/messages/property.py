"""What is said of one property of messages: a row of the table in `properties`."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import msgspec

if TYPE_CHECKING:
    from openmsmq.client.messages.properties import MessageView

Value = TypeVar("Value")


class Kind(Enum):
    """What the values of a property are, where they are neither Python's nor bytes of a packet."""

    TEXT = auto()
    BYTES = auto()
    TIME = auto()
    NUMBER = auto()
    """Up to 64 bits."""
    SMALL = auto()
    """A number of up to 31 bits."""
    YES_NO = auto()
    PAIRS = auto()
    """Texts by their names."""


class Property(msgspec.Struct, Generic[Value]):
    """One row: a property, what it is called, how it is read, shown and set."""

    kind: Kind
    meaning: str
    read: Callable[[MessageView], Value]
    """Return it as an attribute of a received message."""
    plain: Callable[[Any], object] | None = None
    """Return it as text, bytes, a number, a time or None, for JSON and Spark, if it is not yet."""
    name: str = ""
    """The attribute."""
    key: str = ""
    """The key in JSON and the column, if not as the attribute: `body` is what a formatter reads in
    Python, and its bytes elsewhere."""
    group: str = ""
    null: str = ""
    """When there is none although the message can be decoded; empty for never."""
    shows: tuple[str, ...] = ()
    """What MS-MQDMPR 3.1.1.12 calls it."""
    is_column: bool = True
    on_request: bool = False
    """Whether it costs much and is read only if somebody names it; then it is no key."""
    sent: str = ""
    """What its sender says with it; empty if no sender can."""
    is_set_by_rows: bool = True
    """Whether a column of a data frame that is written to queues can give it, if a sender can."""
    flags: tuple[str, ...] = ()
    """The options of `openmsmq send` that set it; the first one is its name."""
    metavar: str | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name
        self.key = self.key or self.name

    if TYPE_CHECKING:
        # At run time each becomes a plain `property`.
        @overload
        def __get__(self, message: None, owner: type) -> Property[Value]: ...
        @overload
        def __get__(self, message: object, owner: type) -> Value: ...
        def __get__(self, message: object, owner: type) -> Property[Value] | Value: ...
