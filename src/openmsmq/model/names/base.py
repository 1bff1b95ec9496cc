"""What all format names have in common. [MQMQ 2.1]"""

from __future__ import annotations

import msgspec

from openmsmq.model.limits import FORMAT_NAME_MAX_CHARACTERS
from openmsmq.model.names.errors import IllegalFormatName
from openmsmq.model.names.parts import excess_position, fold


class BaseFormatName(msgspec.Struct, frozen=True, gc=False):
    """What all format names can tell. The answers here hold for most kinds."""

    @property
    def key(self) -> str:
        """What is equal for names of the same queue, whatever their case and spelling."""
        return fold(str(self))

    @property
    def is_read_only(self) -> bool:
        """Whether it names a journal or a dead-letter queue, to which nobody can send."""
        return False

    @property
    def openable_for_send(self) -> bool:
        """Whether an application can send to it."""
        return not self.is_read_only

    @property
    def openable_for_receive(self) -> bool:
        """Whether an application can receive, or peek, from it."""
        return True


def check_format_name_size(text: str) -> None:
    """Refuse a text that is too long for a single format name."""
    position = excess_position(text, FORMAT_NAME_MAX_CHARACTERS)
    if position is not None:
        problem = f"a format name has at most {FORMAT_NAME_MAX_CHARACTERS} characters"
        raise IllegalFormatName(text, position, problem)
