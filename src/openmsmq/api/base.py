"""What all requests and replies of the application interface are."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Generic, TypeAlias, TypeVar, get_args

import msgspec

from openmsmq.api.facts import Facts, Repeats
from openmsmq.model.limits import FORMAT_NAME_MAX_CHARACTERS, FORMAT_NAME_MAX_COUNT

NUMBER_MAX: Final = (1 << 63) - 1
"""The largest number in a request: Python's own functions take no larger ones."""

Number: TypeAlias = Annotated[int, msgspec.Meta(le=NUMBER_MAX)]
"""A number in a request. MessagePack has none that is too small."""


NAME_MAX_CHARACTERS: Final = FORMAT_NAME_MAX_COUNT * (FORMAT_NAME_MAX_CHARACTERS + 1)
"""The longest name in a request: a list of as many format names as there may be. [ours]"""

TEXT_MAX_CHARACTERS: Final = 65_536
"""The longest other text in a request; what takes it says how long it may be there. [ours]"""

OCTETS_MAX_BYTES: Final = 262_144
"""The most bytes in a request that are no message and no object of the directory. [ours]"""

SEVERAL_MAX_COUNT: Final = 200_000
"""Elements of a list in a request: as many as a directory has objects. [ours]"""

Item = TypeVar("Item")

Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=NAME_MAX_CHARACTERS)]
"""A name of a queue, or of several."""
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=TEXT_MAX_CHARACTERS)]
"""Any other text."""
Octets: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=OCTETS_MAX_BYTES)]
"""An identifier, a certificate, a descriptor: whatever is no message."""
Several: TypeAlias = Annotated[list[Item], msgspec.Meta(max_length=SEVERAL_MAX_COUNT)]
"""A list."""


class Reply(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What the queue manager answers."""


class Failed(Reply, frozen=True, tag="failed"):
    """The call was refused or went wrong; nothing of it took effect."""

    code: int
    """The MQ_ERROR code."""
    detail: str


class Done(Reply, frozen=True, tag="done"):
    """The call took effect and has nothing more to say."""


ReplyKind = TypeVar("ReplyKind", bound=Reply)


class Request(msgspec.Struct, Generic[ReplyKind], frozen=True, array_like=True, tag=True):
    """Something an application asks for, and what it is answered if it does not fail.

    A class of requests that does not say all of `facts`, or says what cannot be, is refused when
    it is made.
    """

    facts: ClassVar[Facts]
    """What is to be known of the requests of the class."""
    reply: ClassVar[type[Reply]]
    """What answers them."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Take what the class says of itself."""
        super().__init_subclass__(**options)
        said = vars(cls)
        if "facts" not in said:
            raise TypeError(f"{cls.__name__} has no facts")
        (cls.reply,) = get_args(said["__orig_bases__"][0])
        facts = cls.facts
        if ("may_repeat" in said) != (facts.repeats is Repeats.SOMETIMES):
            raise TypeError(f"{cls.__name__} repeats {facts.repeats.value}: see its may_repeat")
        if facts.waits and "patience_ms" not in said:
            raise TypeError(f"{cls.__name__} waits, and its patience_ms does not say how long")
        if facts.needs.check.goes_by_name and "name" not in said["__annotations__"]:
            raise TypeError(f"{cls.__name__} needs rights on a queue that it does not name")

    @property
    def may_repeat(self) -> bool:
        """Whether it may be sent again if its answer was lost: it has changed nothing for good.

        What is done in a transaction is undone when its connection is lost, and so are locks.
        """
        return self.facts.repeats is Repeats.ALWAYS

    @property
    def patience_ms(self) -> int | None:
        """How long it may take by what it asks for; None for as long as it takes."""
        return 0
