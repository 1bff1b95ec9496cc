"""Three clients of both interfaces: ours, and two that are not, which know nothing of each other.

A method is called by its number, with its parameters in the order of the IDL; its results come back
in that order, too: handles as 20 bytes, sections as triples. impacket writes and reads stubs with
classes that were written by hand; scapy with those that its authors made from the specifications.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from impacket.dcerpc.v5 import rpcrt
from scapy.config import conf

from openmsmq.client.connections.rpc_connection import RpcConnection, RpcFault
from openmsmq.client.managing.proving import protection
from openmsmq.security.authentication.initiators import credentials_of
from openmsmq.wire.rpc import management, remote_read
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.syntaxes import Syntax
from openmsmq.wire.rpc.variants import NULL
from tests.runtime.remote_client import (
    ADMINISTRATOR,
    MANAGEMENT,
    PASSWORD,
    REMOTE_READ,
    connect,
    free_address,
)
from tests.unit.wire.rpc import impacket_calls as idl

conf.exts.load("scapy-rpc")
conf.ndr64 = False

from msrpcs import ms_mqrr  # noqa: E402 -- the extension has to be loaded
from scapy.layers import dcerpc  # noqa: E402
from scapy.layers.msrpce.rpcclient import DCERPC_Client  # noqa: E402
from scapy.layers.ntlm import NTLMSSP  # noqa: E402
from scapy.layers.spnego import SPNEGOSSP  # noqa: E402

Name: TypeAlias = tuple[int, int, str]
"""A direct name: its type, its suffix, and its text."""
TIMEOUT_S: Final = 30.0
CONTEXT_BYTES: Final = 20


class Fault(Exception):
    """A call that has ended without results."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status:#010x}")
        self.status = status


class Peer:
    """A client, bound to one interface; it notes which methods it has called."""

    def __init__(self) -> None:
        self.called: set[int] = set()

    def call(self, operation: int, *values: Any) -> list[Any]:
        """Make a call, and wait for its results."""
        self.called.add(operation)
        return self._call(operation, values)

    def _call(self, operation: int, values: tuple[Any, ...]) -> list[Any]:
        raise NotImplementedError

    def close(self) -> None:
        """Hang up."""
        raise NotImplementedError


class Impacket(Peer):
    """impacket, with NTLM."""

    def __init__(self, port: int, interface: tuple[str, str] = REMOTE_READ) -> None:
        super().__init__()
        self._dce = connect(port, interface)
        self._methods = _READING if interface == REMOTE_READ else _MANAGING

    def _call(self, operation: int, values: tuple[Any, ...]) -> list[Any]:
        asked, answer = self._methods[operation]
        request, given = asked(), list(values)
        for name, _ in asked.structure:
            if name in ("cbPropagationToken", "cp"):
                request[name] = len(given[0])
            else:
                _put(request, name, given.pop(0))
        self._dce.call(operation, request.getData())
        try:
            stub = self._dce.recv()
        except rpcrt.DCERPCException as error:
            raise Fault(_status(error)) from None
        found = idl.read(answer, stub)
        return [_plain(found[name]) for name, _ in answer.structure if not name.startswith("pdwNu")]

    def close(self) -> None:
        """Hang up."""
        self._dce.disconnect()


def _put(request: Any, name: str, value: Any) -> None:
    match value:
        case (int(), int(), str()) if name == "pQueueFormat":
            request[name]["m_qft"], request[name]["m_SuffixAndFlags"], text = value
            request[name]["name"]["tag"] = value[0]
            field = "m_pDirectID" if value[0] == 3 else "m_pDirectSubqueueID"
            request[name]["name"][field] = text + "\0"
        case bytes() if name.lower().startswith(("phcontext", "pphcontext")):
            request[name]["attributes"] = int.from_bytes(value[:4], "little")
            request[name]["uuid"] = value[4:]
        case bytes() if name == "pTransactionId":
            request[name]["rgb"] = value
        case bytes() if name == "pbPropagationToken":
            request[name] = list(struct.unpack(f"{len(value)}c", value))
        case _ if name == "pObjectFormat":
            request[name]["type"] = 1 if value is None else 2
            request[name]["object"]["tag"] = 1 if value is None else 2
            if value is not None:
                _put(request[name]["object"], "pQueueFormat", value)
        case str():
            request[name] = value + "\0"
        case _:
            request[name] = value


def _plain(value: Any) -> Any:
    """Return what a result says, in types of Python."""
    if isinstance(value, idl.CONTEXT):
        return int(value["attributes"]).to_bytes(4, "little") + value["uuid"]
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, idl.SectionBuffer):
        data = b"".join(value["pSectionBuffer"])
        assert value["SectionSize"] == len(data)
        return value["SectionBufferType"], value["SectionSizeAlloc"], data
    if isinstance(value, idl.PROPVARIANT):
        tag = value["vt"]
        assert value["_varUnion"]["tag"] == tag
        return tag, _variant(tag, value["_varUnion"])
    return value


def _variant(tag: int, union: Any) -> Any:
    if tag == 1:
        return None
    name, _ = idl.VARIANT_UNION.union[tag]
    value = union[name]
    if tag == 31:
        return str(value).rstrip("\0")
    if tag == 65:
        return b"".join(value["pBlobData"]) if value["cbSize"] else b""
    if tag & 0x1000:
        elements = _plain(value["pElems"]) if value["cElems"] else []
        texts = tag == 0x101F
        return [each["Data"].rstrip("\0") if texts else each for each in elements]
    return value


def _status(error: rpcrt.DCERPCException) -> int:
    """Return the status of a fault; impacket says the names of those that it knows."""
    shown = str(error)
    for status, name in rpcrt.rpc_status_codes.items():
        if name.strip() in shown:
            return int(status)
    return int(shown.rpartition(" ")[2], 16)


class Scapy(Peer):
    """scapy, with NTLM inside of SPNEGO."""

    def __init__(self, port: int) -> None:
        super().__init__()
        proved = NTLMSSP(UPN=f"{ADMINISTRATOR}@WORKGROUP", PASSWORD=PASSWORD)
        self._client = DCERPC_Client(
            dcerpc.DCERPC_Transport.NCACN_IP_TCP,
            ndr64=False,
            ssp=SPNEGOSSP([proved]),
            verb=False,
            auth_level=dcerpc.DCE_C_AUTHN_LEVEL.PKT_PRIVACY,
        )
        self._client.connect(free_address(), port, timeout=TIMEOUT_S)
        self._client.bind(dcerpc.find_dcerpc_interface("RemoteRead"))

    def _call(self, operation: int, values: tuple[Any, ...]) -> list[Any]:
        kind = ms_mqrr.REMOTEREAD_OPNUMS[operation].request
        names = [each.name for each in kind.fields_desc if not each.name.startswith("cb")]
        fields = {name: _packet(name, value) for name, value in zip(names, values, strict=True)}
        found = self._client.sr1_req(kind(**fields, ndr64=False))
        if dcerpc.DceRpc5Fault in found:
            raise Fault(found[dcerpc.DceRpc5Fault].status)
        return _scapy_results(operation, found)

    def close(self) -> None:
        """Hang up."""
        self._client.close()


def _packet(name: str, value: Any) -> Any:
    match value:
        case (int(kind), int(suffix), str(text)):
            union = dcerpc.NDRUnion(tag=kind, value=text)
            return ms_mqrr.QUEUE_FORMAT(m_qft=kind, m_SuffixAndFlags=suffix, value=union)
        case bytes() if "Context" in name:
            return dcerpc.NDRContextHandle(value, ndr64=False)
        case bytes() if name == "pClientId":
            parts = struct.unpack("<IHH8s", value)
            return ms_mqrr.GUID(Data1=parts[0], Data2=parts[1], Data3=parts[2], Data4=parts[3])
        case bytes() if name == "pTransactionId":
            return ms_mqrr.XACTUOW(rgb=value)
        case _:
            return value


def _scapy_results(operation: int, found: Any) -> list[Any]:
    if operation in (2, 11):
        # It looks for a result behind what methods return that have none.
        stub = bytes(found)
        context = stub[-CONTEXT_BYTES:] if operation == 11 else stub[:CONTEXT_BYTES]
        return [context] if operation == 2 else [int.from_bytes(stub[:8], "little"), context]
    results: list[Any] = []
    for field in found.fields_desc:
        value = getattr(found, field.name)
        if field.name == "pphContext":
            value = bytes(value)
        elif field.name == "ppPacketSections":
            value = [_section(each.value) for each in value.value] if found.status == 0 else []
        elif field.name.startswith("pdwNumber"):
            continue
        results.append(value)
    return results


def _section(found: Any) -> tuple[int, int, bytes]:
    data = found.pSectionBuffer.value.value
    assert found.SectionSize == len(data)
    return found.SectionBufferType, found.SectionSizeAlloc, data


class Ours(Peer):
    """The client with which this package manages other computers."""

    def __init__(self, port: int, interface: tuple[str, str] = REMOTE_READ) -> None:
        super().__init__()
        proved = protection(credentials_of(ADMINISTRATOR, PASSWORD), free_address())
        syntax = Syntax.of(interface[0], 1)
        self._connection = RpcConnection((free_address(), port), syntax, proved, TIMEOUT_S)
        self._methods = _OUR_READING if interface == REMOTE_READ else _OUR_MANAGING

    def _call(self, operation: int, values: tuple[Any, ...]) -> list[Any]:
        kind, asked, answer = self._methods[operation]
        given = [QueueFormat(*each[:2], 0, each[2]) if _is_name(each) else each for each in values]
        if kind is remote_read.OpenQueue:
            given[3] = remote_read.Guid(given[3])
        if self._methods is _OUR_MANAGING:
            is_queue = values[0] is not None
            given[0] = management.ManagedObject(1 + is_queue, given[0] if is_queue else 0)
        if kind is management.GetInfo:
            given[1:] = [tuple(given[1]), (NULL,) * len(given[1])]
        try:
            stub = self._connection.call(operation, asked.encode(kind(*given)))
        except RpcFault as fault:
            raise Fault(fault.status) from None
        found = answer.decode(stub)
        return [_ours_plain(getattr(found, name)) for name in found.__struct_fields__]

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def _is_name(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and isinstance(value[2], str)


def _ours_plain(value: Any) -> Any:
    if isinstance(value, remote_read.Section):
        return value.kind, value.size_alloc, value.data
    if isinstance(value, management.Variant):
        return value.tag, _ours_plain(value.value)
    return [_ours_plain(each) for each in value] if isinstance(value, tuple) else value


_READING: Final[dict[int, tuple[Any, Any]]] = {
    0: (idl.R_GetServerPort, idl.R_GetServerPortResponse),
    2: (idl.R_OpenQueue, idl.R_OpenQueueResponse),
    3: (idl.R_CloseQueue, idl.R_CloseQueueResponse),
    4: (idl.R_CreateCursor, idl.R_CreateCursorResponse),
    5: (idl.R_CloseCursor, idl.Response),
    6: (idl.R_PurgeQueue, idl.Response),
    7: (idl.R_StartReceive, idl.R_StartReceiveResponse),
    8: (idl.R_CancelReceive, idl.Response),
    9: (idl.R_EndReceive, idl.Response),
    10: (idl.R_MoveMessage, idl.Response),
    11: (idl.R_OpenQueueForMove, idl.R_OpenQueueForMoveResponse),
    12: (idl.R_QMEnlistRemoteTransaction, idl.Response),
    13: (idl.R_StartTransactionalReceive, idl.R_StartReceiveResponse),
    14: (idl.R_SetUserAcknowledgementClass, idl.Response),
    15: (idl.R_EndTransactionalReceive, idl.Response),
}
_MANAGING: Final[dict[int, tuple[Any, Any]]] = {
    0: (idl.R_QMMgmtGetInfo, idl.R_QMMgmtGetInfoResponse),
    1: (idl.R_QMMgmtAction, idl.Response),
}
_OUR_READING: Final[dict[int, tuple[Any, Any, Any]]] = {
    0: (remote_read.Nothing, remote_read.NOTHING, remote_read.PORT),
    2: (remote_read.OpenQueue, remote_read.OPEN_QUEUE, remote_read.OPENED),
    3: (remote_read.OfQueue, remote_read.OF_QUEUE, remote_read.CLOSED),
    4: (remote_read.OfQueue, remote_read.OF_QUEUE, remote_read.CURSOR_MADE),
    5: (remote_read.CloseCursor, remote_read.CLOSE_CURSOR, remote_read.RESULT),
    6: (remote_read.OfQueue, remote_read.OF_QUEUE, remote_read.RESULT),
    7: (remote_read.StartReceive, remote_read.START_RECEIVE, remote_read.RECEIVED),
    8: (remote_read.CancelReceive, remote_read.CANCEL_RECEIVE, remote_read.RESULT),
    9: (remote_read.EndReceive, remote_read.END_RECEIVE, remote_read.RESULT),
    10: (remote_read.MoveMessage, remote_read.MOVE_MESSAGE, remote_read.RESULT),
    11: (remote_read.OpenQueue, remote_read.OPEN_QUEUE, remote_read.OPENED_FOR_MOVE),
    12: (
        remote_read.EnlistRemoteTransaction,
        remote_read.ENLIST_REMOTE_TRANSACTION,
        remote_read.RESULT,
    ),
    13: (
        remote_read.StartTransactionalReceive,
        remote_read.START_TRANSACTIONAL_RECEIVE,
        remote_read.RECEIVED,
    ),
    14: (
        remote_read.SetAcknowledgementClass,
        remote_read.SET_ACKNOWLEDGEMENT_CLASS,
        remote_read.RESULT,
    ),
    15: (remote_read.EndReceive, remote_read.END_RECEIVE, remote_read.RESULT),
}
_OUR_MANAGING: Final[dict[int, tuple[Any, Any, Any]]] = {
    0: (management.GetInfo, management.GET_INFO, management.INFO),
    1: (management.Action, management.ACTION, management.DONE),
}


@contextlib.contextmanager
def reader(kind: type[Peer], port: int) -> Iterator[Peer]:
    """Let a client in that reads."""
    made = kind(port)  # type: ignore[call-arg]
    with contextlib.closing(made):
        yield made


@contextlib.contextmanager
def manager(kind: type[Impacket | Ours], port: int) -> Iterator[Peer]:
    """Let a client in that manages."""
    made = kind(port, MANAGEMENT)
    with contextlib.closing(made):
        yield made
