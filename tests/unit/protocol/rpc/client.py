"""A client of RPC as tests make it, with NTLM of our own where somebody has to prove himself."""

from __future__ import annotations

from typing import Final

from openmsmq.protocol.rpc.association import Association
from openmsmq.protocol.rpc.groups import Groups
from openmsmq.protocol.rpc.states import (
    CallArrived,
    Closed,
    Door,
    InterfaceFacts,
    MakeContext,
    Output,
    Written,
)
from openmsmq.security.access.callers import anonymous
from openmsmq.security.authentication.ntlm.initiator import NtlmInitiator
from openmsmq.security.authentication.ports import Fragment, Level, ProviderKind
from openmsmq.wire.rpc.fragments import body_end, read_body, read_header, read_verifier
from openmsmq.wire.rpc.pdus import (
    AUTH_PADDING_BYTES,
    HEADER_BYTES,
    REQUEST_BYTES,
    TRAILER_BYTES,
    WHOLE,
    Auth3,
    Bind,
    BindAck,
    Body,
    Flag,
    Header,
    Offer,
    PduType,
    Request,
    Response,
    Verifier,
    write,
)
from openmsmq.wire.rpc.syntaxes import NDR, Syntax
from tests.unit.security.authentication.sides import Book, acceptor, initiator

ECHO: Final = Syntax.of("11111111-2222-3333-4444-555555555555", 1, 2)
VAULT: Final = Syntax.of("99999999-2222-3333-4444-555555555555", 1)
OPERATIONS: Final = 8
STRANGER: Final = anonymous("192.0.2.1")


def make_context(book: Book | None = None) -> MakeContext:
    """Prove callers by NTLM."""
    return lambda kind: acceptor(book) if kind is ProviderKind.NTLM else None


def door() -> Door:
    """A port with an interface for everybody and one for those who seal."""
    return Door(
        2103,
        {
            ECHO: InterfaceFacts(OPERATIONS),
            VAULT: InterfaceFacts(OPERATIONS, Level.PRIVACY),
        },
    )


def association(
    groups: Groups | None = None, key: int = 1, book: Book | None = None
) -> Association:
    joined = Groups() if groups is None else groups
    return Association(door(), joined, key, STRANGER, make_context(book))


def offer(context: int = 0, interface: Syntax = ECHO, *transfers: Syntax) -> Offer:
    return Offer(context, interface, transfers or (NDR,))


def bind(
    *offers: Offer,
    call: int = 1,
    group: int = 0,
    flags: int = WHOLE,
    verifier: Verifier | None = None,
    sizes: tuple[int, int] = (5840, 5840),
) -> bytes:
    body = Bind(*sizes, group, offers or (offer(),))
    return write(PduType.BIND, call, body, verifier, flags)


def alter(*offers: Offer, call: int = 2, verifier: Verifier | None = None) -> bytes:
    return write(PduType.ALTER_CONTEXT, call, Bind(5840, 5840, 0, offers), verifier)


def request(
    stub: bytes = b"",
    *,
    call: int = 3,
    context: int = 0,
    operation: int = 1,
    flags: int = WHOLE,
) -> bytes:
    return write(PduType.REQUEST, call, Request(context, operation, stub), None, flags)


def notice(kind: PduType, call: int) -> bytes:
    return Header(kind, WHOLE, HEADER_BYTES, 0, call).encode()


def written(outputs: list[Output]) -> list[tuple[Header, Body]]:
    """Return the fragments that are written."""
    data = b"".join(each.data for each in outputs if isinstance(each, Written))
    found = []
    while data:
        header = read_header(data)
        found.append((header, read_body(header, data[: header.length])))
        data = data[header.length :]
    return found


def answer(machine: Association, data: bytes) -> tuple[Header, Body]:
    """Hand bytes in that are answered by one fragment."""
    machine.received(data)
    (found,) = written(machine.take_outputs())
    return found


def calls(outputs: list[Output]) -> list[CallArrived]:
    return [each for each in outputs if isinstance(each, CallArrived)]


def is_closed(outputs: list[Output]) -> bool:
    return any(isinstance(each, Closed) for each in outputs)


def bound(**facts: object) -> Association:
    """An association whose bind was accepted."""
    machine = association()
    machine.received(bind(**facts))  # type: ignore[arg-type]
    ((_, ack),) = written(machine.take_outputs())
    assert isinstance(ack, BindAck)
    return machine


class Caller:
    """Somebody who proves himself by NTLM, and protects his calls."""

    def __init__(self, level: Level, number: int = 7, side: NtlmInitiator | None = None) -> None:
        self.level = level
        self.number = number
        self.side = side or initiator()

    def verifier(self, token: bytes, padding: int = 0) -> Verifier:
        return Verifier(ProviderKind.NTLM, self.level, self.number, token, padding)

    def prove(self, machine: Association, *offers: Offer, group: int = 0) -> list[Output]:
        """Bind and prove; give what the last leg brought."""
        first = self.verifier(self.side.step(b"").token)
        machine.received(bind(*(offers or (offer(),)), group=group, verifier=first))
        data = b"".join(each.data for each in machine.take_outputs() if isinstance(each, Written))
        challenge = read_verifier(read_header(data), data)
        assert challenge is not None
        last = self.verifier(self.side.step(challenge.token).token)
        machine.received(write(PduType.AUTH3, 1, Auth3(), last))
        return machine.take_outputs()

    def request(
        self,
        stub: bytes = b"",
        *,
        call: int = 3,
        context: int = 0,
        operation: int = 1,
        flags: int = WHOLE,
    ) -> bytes:
        """Return a call, or a fragment of one, as this caller protects it."""
        padding = -len(stub) % AUTH_PADDING_BYTES
        size = self.side.signature_size(self.level)
        verifier = self.verifier(bytes(size), padding)
        body = Request(context, operation, stub + bytes(padding)).encode()
        length = HEADER_BYTES + len(body) + TRAILER_BYTES + size
        head = Header(PduType.REQUEST, flags, length, size, call).encode() + body[:8]
        sent, signature = self.side.protect(
            self.level, Fragment(head, body[8:], verifier.trailer), signs_header=False
        )
        return head + sent + verifier.trailer + signature

    def results(self, outputs: list[Output]) -> bytes:
        """Return the stub of results, from all their fragments."""
        data = b"".join(each.data for each in outputs if isinstance(each, Written))
        found = b""
        flags = []
        while data:
            header = read_header(data)
            whole, data = data[: header.length], data[header.length :]
            assert header.length <= 5840
            assert isinstance(read_body(header, whole), Response)
            verifier = read_verifier(header, whole)
            assert verifier is not None
            end = body_end(header)
            stub = self.side.unprotect(
                self.level,
                Fragment(
                    whole[:REQUEST_BYTES],
                    whole[REQUEST_BYTES:end],
                    whole[end : end + TRAILER_BYTES],
                ),
                verifier.token,
                signs_header=False,
            )
            found += stub[: len(stub) - verifier.padding]
            flags.append(header.flags & WHOLE)
        assert flags[0] & Flag.FIRST
        assert flags[-1] & Flag.LAST
        assert all(not each for each in flags[1:-1])
        return found
