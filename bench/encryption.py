"""The security of messages: what it costs to encrypt, decrypt, sign and check one of 1 KiB."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from bench.measure import Effort, Figure, Timing, ratio, time_in_turn
from openmsmq.model.identity import Guid
from openmsmq.model.message import AuthenticationRequest, PrivacyLevel
from openmsmq.security.encryption.decryption import EncryptionKey, ReceiveKeys
from openmsmq.security.encryption.encryption import SendKeys
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.providers import ADVANCED
from openmsmq.security.rsa import PrivateKey
from openmsmq.security.signatures.certificates import make_certificate
from openmsmq.security.signatures.signatures import Signer, check_signature, sign
from openmsmq.wire import packets
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import PublicName
from openmsmq.wire.headers.user import RECOVERABLE, UserHeader
from openmsmq.wire.packets import UserMessage

KEY_BITS: Final = 2048
SOURCE: Final = Guid(range(16))
DESTINATION: Final = Guid(range(16, 32))

MESSAGE: Final = UserMessage(
    UserHeader(
        SOURCE,
        DESTINATION,
        sent_time_s=1_700_000_000,
        message_number=7,
        flags=RECOVERABLE,
        destination=PublicName(Guid(range(32, 48))),
    ),
    MessageProperties.of(bytes(1024), "order 17", body_type=8209),
)
"""1 KiB to a public queue: only names that say whose queue it is can be encrypted for."""

STATEMENTS: Final = {
    "encode": "encode(message)",
    "decode": "decode(plain)",
    "encrypt": "send.encrypt(plain, destination, published, level, 0, draw)",
    "decrypt": "receive.decrypt(encrypted, 0)",
    "plain": "decode(encode(message))",
    "whole": "decode(receive.decrypt("
    "send.encrypt(encode(message), destination, published, level, 0, draw), 0))",
    "new key": "SendKeys(policy).encrypt(plain, destination, published, level, 0, draw)",
    "unknown key": "ReceiveKeys(policy, keys).decrypt(encrypted, 0)",
    "sign": "sign(plain, signer, request, source)",
    "check": "check_signature(signed, policy)",
}


def prepared() -> dict[str, Any]:
    """Make the keys and packets that the statements name."""
    draw = random.Random(7).randbytes
    policy = SecurityPolicy()
    key = PrivateKey.generate(KEY_BITS, draw)
    keys = [EncryptionKey(ADVANCED, key)]
    published = [keys[0].published()]
    send, receive = SendKeys(policy), ReceiveKeys(policy, keys)
    plain = packets.encode(MESSAGE)
    encrypted = send.encrypt(plain, DESTINATION, published, PrivacyLevel.ADVANCED, 0, draw)
    receive.decrypt(encrypted, 0)
    signer = Signer(key, make_certificate(key, "bench", 1_700_000_000, 2_000_000_000, 1))
    signed = sign(plain, signer, AuthenticationRequest.ALWAYS, SOURCE)
    return {
        "encode": packets.encode,
        "decode": packets.decode,
        "sign": sign,
        "check_signature": check_signature,
        "SendKeys": SendKeys,
        "ReceiveKeys": ReceiveKeys,
        "message": MESSAGE,
        "plain": plain,
        "encrypted": encrypted,
        "signed": packets.decode(signed),
        "source": SOURCE,
        "destination": DESTINATION,
        "level": PrivacyLevel.ADVANCED,
        "request": AuthenticationRequest.ALWAYS,
        "policy": policy,
        "keys": keys,
        "published": published,
        "send": send,
        "receive": receive,
        "signer": signer,
        "draw": draw,
    }


def run(effort: Effort) -> Iterator[Figure]:
    """Encrypt, decrypt, sign and check a 1 KiB message with AES-256 and RSA of 2048 bits."""
    timings = time_in_turn(STATEMENTS, prepared(), effort)
    yield ratio("codec with encryption to codec without", "x", timings["whole"], timings["plain"])
    for name, key in (
        ("encode", "encode"),
        ("decode", "decode"),
        ("encrypt with a known session key", "encrypt"),
        ("decrypt with a known session key", "decrypt"),
        ("encrypt with a new session key", "new key"),
        ("decrypt with an unknown session key", "unknown key"),
        ("sign", "sign"),
        ("check a signature", "check"),
    ):
        yield _microseconds(name, timings[key])


def _microseconds(name: str, timing: Timing) -> Figure:
    each = sorted(taken / 1000 for taken in timing.rounds_ns)
    quarter = len(each) // 4
    return Figure(name, each[0], "us", each[quarter], each[-1 - quarter])
