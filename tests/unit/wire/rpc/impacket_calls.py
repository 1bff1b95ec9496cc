"""The calls of both interfaces as impacket writes and reads them: another's opinion of NDR.

The classes are written from the IDL, by hand, and know nothing of ours.
"""

from __future__ import annotations

from typing import Any

from impacket.dcerpc.v5.dtypes import GUID, LONG, LPWSTR, NULL, ULONG, ULONGLONG, USHORT, WSTR
from impacket.dcerpc.v5.ndr import (
    NDRCALL,
    NDRHYPER,
    NDRPOINTER,
    NDRSHORT,
    NDRSTRUCT,
    NDRUNION,
    NDRUSHORT,
    NDRUSMALL,
    NDRUniConformantArray,
)

__all__ = ["NULL"]


class OBJECTID(NDRSTRUCT):
    structure = (("Lineage", GUID), ("Uniquifier", ULONG))


class QUEUE_UNION(NDRUNION):  # noqa: N801 -- the names of the IDL
    commonHdr = (("tag", NDRUSMALL),)  # noqa: N815
    union = {  # noqa: RUF012
        1: ("m_gPublicID", GUID),
        2: ("m_oPrivateID", OBJECTID),
        3: ("m_pDirectID", LPWSTR),
        4: ("m_gMachineID", GUID),
        8: ("m_pDirectSubqueueID", LPWSTR),
    }


class QUEUE_FORMAT(NDRSTRUCT):  # noqa: N801
    structure = (
        ("m_qft", NDRUSMALL),
        ("m_SuffixAndFlags", NDRUSMALL),
        ("m_reserved", NDRUSHORT),
        ("name", QUEUE_UNION),
    )

    def getAlignment(self) -> int:  # noqa: N802
        # That of the largest arm, whichever is there.
        return 4


class PQUEUE_FORMAT(NDRPOINTER):  # noqa: N801
    referent = (("Data", QUEUE_FORMAT),)


class CONTEXT(NDRSTRUCT):
    structure = (("attributes", ULONG), ("uuid", "16s=b''"))

    def getAlignment(self) -> int:  # noqa: N802
        return 4


class UOW(NDRSTRUCT):
    structure = (("rgb", "16s=b''"),)

    def getAlignment(self) -> int:  # noqa: N802
        return 1


class R_OpenQueue(NDRCALL):  # noqa: N801
    opnum = 2
    structure = (
        ("pQueueFormat", QUEUE_FORMAT),
        ("dwAccess", ULONG),
        ("dwShareMode", ULONG),
        ("pClientId", GUID),
        ("fNonRoutingServer", LONG),
        ("Major", NDRUSMALL),
        ("Minor", NDRUSMALL),
        ("BuildNumber", USHORT),
        ("fWorkgroup", LONG),
    )


class R_GetServerPort(NDRCALL):  # noqa: N801
    opnum = 0
    structure = ()


class R_GetServerPortResponse(NDRCALL):  # noqa: N801
    structure = (("ErrorCode", ULONG),)


class R_OpenQueueResponse(NDRCALL):  # noqa: N801
    structure = (("pphContext", CONTEXT),)


class R_CloseQueue(NDRCALL):  # noqa: N801
    opnum = 3
    structure = (("pphContext", CONTEXT),)


class R_CloseQueueResponse(NDRCALL):  # noqa: N801
    structure = (("pphContext", CONTEXT), ("ErrorCode", ULONG))


class R_CreateCursor(NDRCALL):  # noqa: N801
    opnum = 4
    structure = (("phContext", CONTEXT),)


class R_CreateCursorResponse(NDRCALL):  # noqa: N801
    structure = (("phCursor", ULONG), ("ErrorCode", ULONG))


class R_CloseCursor(NDRCALL):  # noqa: N801
    opnum = 5
    structure = (("phContext", CONTEXT), ("hCursor", ULONG))


class Response(NDRCALL):
    """Nothing but how it went."""

    structure = (("ErrorCode", ULONG),)


class R_PurgeQueue(NDRCALL):  # noqa: N801
    opnum = 6
    structure = (("phContext", CONTEXT),)


class R_StartReceive(NDRCALL):  # noqa: N801
    opnum = 7
    structure = (
        ("phContext", CONTEXT),
        ("LookupId", ULONGLONG),
        ("hCursor", ULONG),
        ("ulAction", ULONG),
        ("ulTimeout", ULONG),
        ("dwRequestId", ULONG),
        ("dwMaxBodySize", ULONG),
        ("dwMaxCompoundMessageSize", ULONG),
    )


class BYTES(NDRUniConformantArray):
    item = "c"


class PBYTES(NDRPOINTER):
    referent = (("Data", BYTES),)


class SectionBuffer(NDRSTRUCT):
    structure = (
        ("SectionBufferType", NDRSHORT),
        ("SectionSizeAlloc", ULONG),
        ("SectionSize", ULONG),
        ("pSectionBuffer", PBYTES),
    )


class SECTIONS(NDRUniConformantArray):
    item = SectionBuffer


class PSECTIONS(NDRPOINTER):
    referent = (("Data", SECTIONS),)


class R_StartReceiveResponse(NDRCALL):  # noqa: N801
    structure = (
        ("pdwArriveTime", ULONG),
        ("pSequenceId", ULONGLONG),
        ("pdwNumberOfSections", ULONG),
        ("ppPacketSections", PSECTIONS),
        ("ErrorCode", ULONG),
    )


class R_MoveMessage(NDRCALL):  # noqa: N801
    opnum = 10
    structure = (
        ("phContextFrom", CONTEXT),
        ("ullContextTo", ULONGLONG),
        ("LookupId", ULONGLONG),
        ("pTransactionId", UOW),
    )


class R_CancelReceive(NDRCALL):  # noqa: N801
    opnum = 8
    structure = (("phContext", CONTEXT), ("dwRequestId", ULONG))


class R_EndReceive(NDRCALL):  # noqa: N801
    opnum = 9
    structure = (("phContext", CONTEXT), ("dwAck", ULONG), ("dwRequestId", ULONG))


class R_OpenQueueForMove(NDRCALL):  # noqa: N801
    opnum = 11
    structure = R_OpenQueue.structure


class R_OpenQueueForMoveResponse(NDRCALL):  # noqa: N801
    structure = (("pMoveContext", ULONGLONG), ("pphContext", CONTEXT))


class R_QMEnlistRemoteTransaction(NDRCALL):  # noqa: N801
    opnum = 12
    structure = (
        ("pTransactionId", UOW),
        ("cbPropagationToken", ULONG),
        ("pbPropagationToken", BYTES),
        ("pQueueFormat", QUEUE_FORMAT),
    )


class R_StartTransactionalReceive(NDRCALL):  # noqa: N801
    opnum = 13
    structure = (*R_StartReceive.structure, ("pTransactionId", UOW))


class R_SetUserAcknowledgementClass(NDRCALL):  # noqa: N801
    opnum = 14
    structure = (("phContext", CONTEXT), ("LookupId", ULONGLONG), ("usClass", USHORT))


class R_EndTransactionalReceive(NDRCALL):  # noqa: N801
    opnum = 15
    structure = R_EndReceive.structure


class MGMT_UNION(NDRUNION):  # noqa: N801
    commonHdr = (("tag", NDRUSHORT),)  # noqa: N815
    union = {  # noqa: RUF012
        1: ("Reserved1", ULONG),
        2: ("pQueueFormat", PQUEUE_FORMAT),
        3: ("Reserved2", ULONG),
    }


class MGMT_OBJECT(NDRSTRUCT):  # noqa: N801
    structure = (("type", NDRUSHORT), ("object", MGMT_UNION))


class R_QMMgmtAction(NDRCALL):  # noqa: N801
    opnum = 1
    structure = (("pObjectFormat", MGMT_OBJECT), ("lpwszAction", WSTR))


class LPWSTRS(NDRUniConformantArray):
    item = LPWSTR


class PLPWSTRS(NDRPOINTER):
    referent = (("Data", LPWSTRS),)


class CALPWSTR(NDRSTRUCT):
    structure = (("cElems", ULONG), ("pElems", PLPWSTRS))


class ULONGS(NDRUniConformantArray):
    item = "<L"


class PULONGS(NDRPOINTER):
    referent = (("Data", ULONGS),)


class CAUL(NDRSTRUCT):
    structure = (("cElems", ULONG), ("pElems", PULONGS))


class LONGS(NDRUniConformantArray):
    item = "<l"


class PLONGS(NDRPOINTER):
    referent = (("Data", LONGS),)


class CAL(NDRSTRUCT):
    structure = (("cElems", ULONG), ("pElems", PLONGS))


class EMPTY(NDRSTRUCT):
    structure = (("nothing", "0s=b''"),)

    def getAlignment(self) -> int:  # noqa: N802
        return 1


class BLOB(NDRSTRUCT):
    structure = (("cbSize", ULONG), ("pBlobData", PBYTES))


class VARIANT_UNION(NDRUNION):  # noqa: N801
    commonHdr = (("tag", NDRUSHORT),)  # noqa: N815
    union = {  # noqa: RUF012
        1: ("nothing", EMPTY),
        3: ("lVal", LONG),
        19: ("ulVal", ULONG),
        20: ("hVal", NDRHYPER),
        31: ("pwszVal", LPWSTR),
        65: ("blob", BLOB),
        0x1003: ("cal", CAL),
        0x1013: ("caul", CAUL),
        0x101F: ("calpwstr", CALPWSTR),
    }


class PROPVARIANT(NDRSTRUCT):
    structure = (
        ("vt", NDRUSHORT),
        ("wReserved1", NDRUSMALL),
        ("wReserved2", NDRUSMALL),
        ("wReserved3", ULONG),
        ("_varUnion", VARIANT_UNION),
    )

    def getAlignment(self) -> int:  # noqa: N802
        return 8


class VARIANTS(NDRUniConformantArray):
    item = PROPVARIANT


class PVARIANTS(NDRPOINTER):
    referent = (("Data", VARIANTS),)


class CAPROPVARIANT(NDRSTRUCT):
    structure = (("cElems", ULONG), ("pElems", PVARIANTS))


VARIANT_UNION.union[0x100C] = ("capropvar", CAPROPVARIANT)


class R_QMMgmtGetInfo(NDRCALL):  # noqa: N801
    opnum = 0
    structure = (
        ("pObjectFormat", MGMT_OBJECT),
        ("cp", ULONG),
        ("aProp", ULONGS),
    )

    def getData(self, soFar: int = 0) -> bytes:  # noqa: N802, N803
        """Append a NULL for each property, which impacket would align without their count."""
        nothing = PROPVARIANT()
        nothing["vt"] = nothing["_varUnion"]["tag"] = 1
        stub: bytes = super().getData(soFar)
        stub += bytes(-len(stub) % 4) + int(self["cp"]).to_bytes(4, "little")
        for _ in range(self["cp"]):
            stub += bytes(-len(stub) % 8) + nothing.getData()
        return stub


class R_QMMgmtGetInfoResponse(NDRCALL):  # noqa: N801
    structure = (("apVar", VARIANTS), ("ErrorCode", ULONG))


def read(kind: type[NDRCALL], stub: bytes) -> Any:
    """Read a stub as another would."""
    return kind(stub)
