"""Which interfaces a queue manager offers: one entry for each."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from openmsmq.model.identity import GUID_BYTES
from openmsmq.protocol.rpc.states import InterfaceFacts
from openmsmq.remote.management import Management
from openmsmq.remote.remote_read import RemoteRead
from openmsmq.remote.services import Service
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.wire.rpc import management, remote_read
from openmsmq.wire.rpc.syntaxes import Syntax


def offered(config: ServerConfig, port: Callable[[], int]) -> list[Service]:
    """Return the interfaces that are offered beside what every server tells of itself.

    `port` says where they are, once that is known.
    """
    minimum = config.rpc.level
    return [
        Service(
            Syntax(remote_read.INTERFACE, *remote_read.VERSION),
            InterfaceFacts(max(remote_read.Operation) + 1, minimum),
            "Message Queuing - RemoteRead V1",
            lambda _: RemoteRead(lambda: secrets.token_bytes(GUID_BYTES), port()),
        ),
        Service(
            Syntax(management.INTERFACE, *management.VERSION),
            InterfaceFacts(max(management.Operation) + 1, minimum),
            "Message Queuing - QMMgmt V1",
            lambda _: Management(config.manager_name),
        ),
    ]
