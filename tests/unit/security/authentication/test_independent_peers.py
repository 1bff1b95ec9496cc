"""NTLM and SPNEGO with programs that others have written, on either side."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import spnego
from Crypto.Cipher import ARC4
from spnego.iov import BufferType

from openmsmq.security.authentication.ntlm.acceptor import NtlmAcceptor
from openmsmq.security.authentication.ports import Fragment, Level, SecurityContext
from openmsmq.security.authentication.spnego.acceptor import SpnegoAcceptor
from tests.unit.security.authentication.negotiations import ntlm_client, ntlm_server
from tests.unit.security.authentication.sides import (
    ALICE,
    FRAGMENT,
    PASSWORD,
    acceptor,
    initiator,
)

with warnings.catch_warnings():
    # Both use what newer versions of other packages have renamed.
    warnings.simplefilter("ignore")
    from impacket import ntlm as impacket_ntlm
    from scapy.layers.gssapi import GSS_C_FLAGS, GSSAPI_BLOB, SSP
    from scapy.layers.ntlm import NTLMSSP, NTLMSSP_MESSAGE_SIGNATURE, NTLM_Header
    from scapy.layers.spnego import SPNEGOSSP

either_way = pytest.mark.parametrize(
    ("protocol", "server"), [("ntlm", acceptor), ("negotiate", ntlm_server)]
)


def buffers(stub: bytes, signature: bytes | None = None) -> list[object]:
    return [
        BufferType.header if signature is None else (BufferType.header, signature),
        (BufferType.sign_only, FRAGMENT.header),
        (BufferType.data, stub),
        (BufferType.sign_only, FRAGMENT.trailer),
    ]


def options(protocol: str) -> spnego.NegotiateOptions:
    names = spnego.NegotiateOptions
    return names.use_ntlm if protocol == "ntlm" else names.use_negotiate


def take(server: SecurityContext, stub: bytes, signature: bytes) -> bytes:
    sent = Fragment(FRAGMENT.header, stub, FRAGMENT.trailer)
    return server.unprotect(Level.PRIVACY, sent, signature, signs_header=True)


@either_way
def test_pyspnego_as_the_client(
    protocol: str, server: Callable[[], NtlmAcceptor | SpnegoAcceptor]
) -> None:
    ours = server()
    theirs = spnego.client(
        "alice", PASSWORD, hostname="alpha", protocol=protocol, options=options(protocol)
    )
    token = theirs.step()
    while not theirs.complete or token:
        token = theirs.step(answer) if (answer := ours.step(token or b"").token) else None
    assert ours.caller is ALICE
    for _ in range(2):
        wrapped = theirs.wrap_iov(buffers(FRAGMENT.stub), encrypt=True)
        stub, signature = wrapped.buffers[2].data, wrapped.buffers[0].data
        assert take(ours, stub or b"", signature or b"") == FRAGMENT.stub
        stub, signature = ours.protect(Level.PRIVACY, FRAGMENT, signs_header=True)
        assert theirs.unwrap_iov(buffers(stub, signature)).buffers[2].data == FRAGMENT.stub


@pytest.mark.parametrize(("protocol", "client"), [("ntlm", initiator), ("negotiate", ntlm_client)])
def test_pyspnego_as_the_server(
    protocol: str,
    client: Callable[[], SecurityContext],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users = tmp_path / "users"
    users.write_text(f"WORKGROUP:alice:{PASSWORD}\n", encoding="utf-8")
    monkeypatch.setenv("NTLM_USER_FILE", str(users))
    theirs = spnego.server(protocol=protocol, options=options(protocol))
    ours = client()
    token = ours.step(b"").token
    while not theirs.complete:
        answer = theirs.step(token)
        token = ours.step(answer).token if answer else b""
    stub, signature = ours.protect(Level.PRIVACY, FRAGMENT, signs_header=True)
    assert theirs.unwrap_iov(buffers(stub, signature)).buffers[2].data == FRAGMENT.stub
    wrapped = theirs.wrap_iov(buffers(FRAGMENT.stub), encrypt=True)
    stub, signature = wrapped.buffers[2].data or b"", wrapped.buffers[0].data or b""
    assert take(ours, stub, signature) == FRAGMENT.stub


def test_impacket_as_the_client() -> None:
    ours = acceptor()
    negotiate = impacket_ntlm.getNTLMSSPType1("BETA", "WORKGROUP", signingRequired=True)
    challenge = ours.step(negotiate.getData()).token
    third, key = impacket_ntlm.getNTLMSSPType3(negotiate, challenge, "alice", PASSWORD, "WORKGROUP")
    assert ours.step(third.getData()).is_complete
    assert ours.caller is ALICE
    flags = third["flags"]
    sign = impacket_ntlm.SIGNKEY(flags, key)
    seal = impacket_ntlm.SEALKEY(flags, key)
    whole = FRAGMENT.header + FRAGMENT.stub + FRAGMENT.trailer
    stream = ARC4.new(seal)
    for number in range(2):
        stub, signature = impacket_ntlm.SEAL(
            flags, sign, seal, whole, FRAGMENT.stub, number, stream.encrypt
        )
        assert take(ours, stub, signature.getData()) == FRAGMENT.stub


@either_way
def test_scapy_as_the_client(
    protocol: str, server: Callable[[], NtlmAcceptor | SpnegoAcceptor]
) -> None:
    ours = server()
    plain = NTLMSSP(UPN="alice@WORKGROUP", PASSWORD=PASSWORD)
    theirs, read = (plain, NTLM_Header) if protocol == "ntlm" else (SPNEGOSSP([plain]), GSSAPI_BLOB)
    names = GSS_C_FLAGS
    wanted = names.GSS_C_CONF_FLAG | names.GSS_C_INTEG_FLAG | names.GSS_C_MUTUAL_FLAG
    context, token, _ = theirs.GSS_Init_sec_context(None, req_flags=wanted)
    is_complete = False
    while not is_complete:
        step = ours.step(bytes(token))
        is_complete = step.is_complete
        if step.token:
            context, token, _ = theirs.GSS_Init_sec_context(
                context, input_token=read(step.token), req_flags=wanted
            )
    assert ours.caller is ALICE

    def messages(stub: bytes) -> list[SSP.WRAP_MSG]:
        parts = ((FRAGMENT.header, False), (stub, True), (FRAGMENT.trailer, False))
        return [SSP.WRAP_MSG(conf_req_flag=seals, sign=True, data=data) for data, seals in parts]

    sealed, signature = theirs.GSS_WrapEx(context, messages(FRAGMENT.stub))
    assert take(ours, sealed[1].data, bytes(signature)) == FRAGMENT.stub
    stub, answer = ours.protect(Level.PRIVACY, FRAGMENT, signs_header=True)
    found = theirs.GSS_UnwrapEx(context, messages(stub), NTLMSSP_MESSAGE_SIGNATURE(answer))
    assert found[1].data == FRAGMENT.stub
