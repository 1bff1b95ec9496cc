"""A client of RPC for tests: impacket, which knows nothing of ours, with MSMQ's calls by hand."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from impacket.dcerpc.v5 import rpcrt, transport
from impacket.uuid import uuidtup_to_bin

from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, add_account
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.rpc_table import RpcTable
from openmsmq.runtime.logs import EventLog
from tests.server_thread import ServerThread
from tests.unit.wire.rpc import impacket_calls as idl

PASSWORD: Final = "correct horse battery"
ADMINISTRATOR: Final = "root-of-queues"
READER: Final = "reader"
REMOTE_READ: Final = ("1a9134dd-7b39-45ba-ad88-44d01ca47f28", "1.0")
MANAGEMENT: Final = ("41208ee0-e970-11d1-9b9e-00e02c064c39", "1.0")
WAIT_FOR_EVER: Final = 0xFFFFFFFF


_CONNECTIONS: list[Any] = []


class _Opened:
    """The connections of a test, which hang up when it is over."""

    def close(self) -> None:
        for each in _CONNECTIONS:
            with contextlib.suppress(OSError):
                each.disconnect()
        _CONNECTIONS.clear()


def why_not() -> str:
    """Return why no endpoint mapper can run here; nothing if it can."""
    try:
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((free_address(), 135))
    except PermissionError:
        return "the endpoint mapper uses port 135, which this user may not open"
    return ""


def free_address() -> str:
    """Return a loopback address of this process: port 135 cannot be another one."""
    return f"127.135.{os.getpid() >> 8 & 255}.{os.getpid() & 255 or 1}"


def add_accounts(data: Path) -> None:
    """Add one who may everything, and one who has to be given rights."""
    data.mkdir(mode=0o700, exist_ok=True)
    for name in (ADMINISTRATOR, READER):
        administrator = name == ADMINISTRATOR
        add_account(data / ACCOUNTS_FILE, name, PASSWORD, administrator=administrator, now_s=0)


@contextlib.contextmanager
def serving(data: Path, lines: list[str] | None = None, **table: object) -> Iterator[ServerThread]:
    """Run a queue manager with doors of RPC and accounts."""
    add_accounts(data)
    config = ServerConfig(
        data=str(data),
        name="ALPHA",
        address=free_address(),
        api_port=0,
        transfer=False,
        rpc=RpcTable(enabled=True, **table),  # type: ignore[arg-type]
    )
    log = EventLog("text", "debug", [].append if lines is None else lines.append)
    with ServerThread(config, log=log) as running, contextlib.closing(_Opened()):
        yield running


def connect(
    port: int,
    interface: tuple[str, str] | None = REMOTE_READ,
    *,
    user: str = ADMINISTRATOR,
    password: str = PASSWORD,
    level: int = rpcrt.RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
    kind: int = rpcrt.RPC_C_AUTHN_WINNT,
) -> Any:
    """Connect as somebody, without a level as nobody, and bind, if there is an interface."""
    made = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:{free_address()}[{port}]")
    made.set_connect_timeout(20)
    if level:
        made.set_credentials(user, password, "WORKGROUP")
    found = made.get_dce_rpc()
    if level:
        found.set_auth_type(kind)
        found.set_auth_level(level)
    found.connect()
    _CONNECTIONS.append(found)
    if interface is not None:
        found.bind(uuidtup_to_bin(interface))
    return found


class RemoteReader:
    """Somebody who reads queues from afar."""

    def __init__(self, port: int, **options: Any) -> None:
        self.dce = connect(port, **options)

    def call(self, operation: int, stub: bytes) -> bytes:
        """Call and wait."""
        self.send(operation, stub)
        return self.answer()

    def send(self, operation: int, stub: bytes) -> None:
        """Call, and do not wait."""
        self.dce.call(operation, stub)

    def answer(self) -> bytes:
        """Wait for the next results; a fault raises what impacket makes of it."""
        found: bytes = self.dce.recv()
        return found

    def open(self, name: str, access: int = 1) -> bytes:
        """Return the context handle of a queue."""
        request = idl.R_OpenQueue()
        request["pQueueFormat"]["m_qft"] = 3
        request["pQueueFormat"]["name"]["tag"] = 3
        request["pQueueFormat"]["name"]["m_pDirectID"] = name + "\0"
        request["dwAccess"] = access
        request["pClientId"] = bytes(16)
        request["Major"], request["Minor"] = 6, 1
        return self.call(request.opnum, request.getData())[:20]

    def receive_stub(self, handle: bytes, number: int, timeout_ms: int = 0) -> bytes:
        """Return the parameters of a receive."""
        request = idl.R_StartReceive()
        request["phContext"]["attributes"] = 0
        request["phContext"]["uuid"] = handle[4:]
        request["ulTimeout"] = timeout_ms
        request["dwRequestId"] = number
        request["dwMaxBodySize"] = 0xFFFFFFFF
        request["dwMaxCompoundMessageSize"] = 0xFFFFFFFF
        stub: bytes = request.getData()
        return stub

    def receive(self, handle: bytes, number: int) -> tuple[int, bytes]:
        """Receive; return how that went, and the packet."""
        return self.received(self.call(7, self.receive_stub(handle, number)))

    @staticmethod
    def received(stub: bytes) -> tuple[int, bytes]:
        """Return the result and the packet of a receive."""
        found = idl.read(idl.R_StartReceiveResponse, stub)
        if found["ErrorCode"]:
            return found["ErrorCode"], b""
        (section,) = found["ppPacketSections"]
        return 0, b"".join(section["pSectionBuffer"])

    def end(self, handle: bytes, number: int, *, take: bool) -> int:
        """Say what becomes of a message."""
        stub = handle + (2 if take else 1).to_bytes(4, "little") + number.to_bytes(4, "little")
        return int.from_bytes(self.call(9, stub)[-4:], "little")

    def close(self) -> None:
        """Hang up."""
        self.dce.disconnect()
