"""The interfaces that can be called here, and what answers their calls."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from openmsmq.protocol.rpc.states import InterfaceFacts
from openmsmq.remote.ports import Interface
from openmsmq.security.access.callers import Caller
from openmsmq.wire.rpc.syntaxes import Syntax


class Service(msgspec.Struct, frozen=True):
    """An interface, and what makes something that answers one caller."""

    interface: Syntax
    facts: InterfaceFacts
    annotation: str
    """What people read who look at the endpoint mapper."""
    make: Callable[[Caller], Interface]
