"""Attempts to reach another queue manager: a socket from the right address, or a reason."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from openmsmq.model.queue import ConnectionStatus
from openmsmq.runtime.addresses import Target, source_for, target
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.start_errors import os_reason


class ConnectFailed(Exception):
    """A connection could not be made; `status` says at which step."""

    def __init__(self, status: ConnectionStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


async def connected_socket(
    address: str, config: ServerConfig, own: Sequence[str], port: int | None = None
) -> socket.socket:
    """Connect to an address from one of our own; raises `ConnectFailed` or `OSError`.

    The port is that of MSMQ, if no other is given.
    """
    where = target(address, port or config.session_port)
    if where is None:
        raise ConnectFailed(
            ConnectionStatus.SOCKET_CONNECT_FAILURE, f"{address} is not an IP address"
        )
    made = _bound_socket(where, source_for(own, address))
    try:
        async with asyncio.timeout(config.connect_timeout_ms / 1000):
            await asyncio.get_running_loop().sock_connect(made, where.address)
    except TimeoutError:
        made.close()
        raise ConnectFailed(
            ConnectionStatus.SOCKET_CONNECT_FAILURE,
            f"no connection within {config.connect_timeout_ms} ms",
        ) from None
    except BaseException:
        made.close()
        raise
    return made


def _bound_socket(where: Target, source: str | None) -> socket.socket:
    """Make a socket that comes from an address of this queue manager."""
    try:
        made = socket.socket(where.family, socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectFailed(ConnectionStatus.SOCKET_CREATE_FAILURE, os_reason(error)) from None
    made.setblocking(False)
    if source is not None:
        try:
            made.bind((source, 0))
        except OSError as error:
            made.close()
            raise ConnectFailed(
                ConnectionStatus.SOCKET_BIND_FAILURE, f"{source}: {os_reason(error)}"
            ) from None
    return made
