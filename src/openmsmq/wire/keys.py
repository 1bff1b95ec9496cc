"""Key blobs: public keys, session keys and certificates as directories and packets carry them.

[MQMQ 2.2.1, 2.2.2, 2.2.21, 2.2.22; MQQB 2.4; MQDS 2.2.18, 2.2.19]

Pure bytes: nothing is encrypted here. RSA numbers stand little-endian on the wire; the values
here are integers, or bytes in the order that RSA functions take and give.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from typing import Final, Self

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields import utf16
from openmsmq.wire.fields.cursor import Field, group, need, pack

_U32: Final = struct.Struct("<I")
PUBLIC_KEY_LAYOUT: Final = struct.Struct("<BBHI4sII")
SESSION_KEY_LAYOUT: Final = struct.Struct("<BBHII")
PUBLISHED_KEY_LAYOUT: Final = struct.Struct("<III")
KEY_LIST_LAYOUT: Final = struct.Struct("<II")
CERTIFICATE_LAYOUT: Final = struct.Struct("<16s16sI")

PUBLIC_KEY_BLOB: Final = 6
SESSION_KEY_BLOB: Final = 1
BLOB_VERSION: Final = 2
RSA_MAGIC: Final = b"RSA1"
_KEY_EXCHANGE: Final = 0xA400


class KeyUse(enum.IntEnum):
    """What an RSA key is for (aiKeyAlg)."""

    SIGNATURE = 0x2400
    KEY_EXCHANGE = _KEY_EXCHANGE


class SessionAlgorithm(enum.IntEnum):
    """The ciphers a body can be encrypted with."""

    RC2 = 0x6602
    AES_128 = 0x660E
    AES_192 = 0x660F
    AES_256 = 0x6610
    RC4 = 0x6801


class ProviderType(enum.IntEnum):
    """The kinds of cryptographic providers that publish keys."""

    RSA_FULL = 0x01
    RSA_AES = 0x18


class RsaPublicKey(msgspec.Struct, frozen=True, gc=False):
    """An RSA public key (PUBLICKEYBLOB). [MQQB 2.4.1]"""

    bit_length: int
    """The length of the modulus field, a multiple of 8."""
    exponent: int
    modulus: int
    use: KeyUse = KeyUse.KEY_EXCHANGE

    @classmethod
    def decode(cls, blob: bytes) -> Self:
        """Read a whole blob."""
        where = "PUBLICKEYBLOB"
        need(blob, 0, PUBLIC_KEY_LAYOUT.size, where)
        kind, version, reserved, algorithm, magic, bit_length, exponent = (
            PUBLIC_KEY_LAYOUT.unpack_from(blob)
        )
        if (kind, version, reserved, magic) != (PUBLIC_KEY_BLOB, BLOB_VERSION, 0, RSA_MAGIC):
            raise DecodeError(where, 0, f"{blob[:12].hex()}, not a public RSA key")
        if algorithm not in (KeyUse.SIGNATURE, KeyUse.KEY_EXCHANGE):
            raise DecodeError(where, 4, f"key algorithm {algorithm:#x}, not 0x2400 or 0xa400")
        if bit_length & 7 or bit_length == 0:
            raise DecodeError(where, 12, f"a modulus of {bit_length} bits; a multiple of 8 needed")
        raw = blob[PUBLIC_KEY_LAYOUT.size :]
        if len(raw) != bit_length // 8:
            raise DecodeError(where, 12, f"{len(raw)} bytes for a modulus of {bit_length} bits")
        return cls(bit_length, exponent, int.from_bytes(raw, "little"), KeyUse(algorithm))

    def encode(self) -> bytes:
        """Return the bytes of the blob."""
        if (
            self.bit_length <= 0
            or self.bit_length & 7
            or self.modulus < 0
            or self.modulus.bit_length() > self.bit_length
        ):
            raise EncodeError(
                "PUBLICKEYBLOB",
                f"a modulus of {self.modulus.bit_length()} bits in {self.bit_length} bits; "
                "whole bytes that hold it are needed",
            )
        fixed = pack(
            PUBLIC_KEY_LAYOUT,
            "PUBLICKEYBLOB",
            PUBLIC_KEY_BLOB,
            BLOB_VERSION,
            0,
            self.use,
            RSA_MAGIC,
            self.bit_length,
            self.exponent,
        )
        return fixed + self.modulus.to_bytes(self.bit_length // 8, "little")

    def fields(self) -> Iterator[Field]:
        """Show the blob, field by field."""
        yield from _blob_fields(PUBLIC_KEY_BLOB)
        yield Field("aiKeyAlg", 4, int(self.use), self.use.name)
        yield Field("magic", 4, RSA_MAGIC.decode())
        yield Field("bitLen", 4, self.bit_length)
        yield Field("pubExp", 4, self.exponent)
        yield Field("modulus", self.bit_length // 8, f"{self.modulus:#x}")


class SessionKeyBlob(msgspec.Struct, frozen=True, gc=False):
    """A session key, encrypted for its receiver (SIMPLEBLOB). [MQQB 2.4.2]"""

    algorithm: SessionAlgorithm
    encrypted_key: bytes
    """As RSA gives it, most significant byte first: as long as the receiver's modulus (C-90)."""

    @classmethod
    def decode(cls, blob: bytes) -> Self:
        """Read a whole blob."""
        where = "SIMPLEBLOB"
        need(blob, 0, SESSION_KEY_LAYOUT.size, where)
        kind, version, reserved, algorithm, encryption = SESSION_KEY_LAYOUT.unpack_from(blob)
        if (kind, version, reserved) != (SESSION_KEY_BLOB, BLOB_VERSION, 0):
            raise DecodeError(where, 0, f"{blob[:4].hex()}, not a session key")
        if algorithm not in SessionAlgorithm.__members__.values():
            raise DecodeError(where, 4, f"session key algorithm {algorithm:#x} is unknown")
        if encryption != _KEY_EXCHANGE:
            raise DecodeError(where, 8, f"encrypted with {encryption:#x}, not 0xa400")
        encrypted = blob[SESSION_KEY_LAYOUT.size :]
        if not encrypted:
            raise DecodeError(where, SESSION_KEY_LAYOUT.size, "an empty key")
        return cls(SessionAlgorithm(algorithm), encrypted[::-1])

    def encode(self) -> bytes:
        """Return the bytes of the blob."""
        if not self.encrypted_key:
            raise EncodeError("SIMPLEBLOB", "an empty key")
        fixed = SESSION_KEY_LAYOUT.pack(
            SESSION_KEY_BLOB, BLOB_VERSION, 0, self.algorithm, _KEY_EXCHANGE
        )
        return fixed + self.encrypted_key[::-1]

    def fields(self) -> Iterator[Field]:
        """Show the blob, field by field."""
        yield from _blob_fields(SESSION_KEY_BLOB)
        yield Field("sessionKeyAlgorithm", 4, int(self.algorithm), self.algorithm.name)
        yield Field("key encryption algorithm", 4, _KEY_EXCHANGE)
        yield Field("encryptedKey", len(self.encrypted_key), self.encrypted_key.hex())


class PublishedKey(msgspec.Struct, frozen=True, gc=False):
    """A public key and the provider it belongs to (MQDSPUBLICKEY). [MQMQ 2.2.1]"""

    provider_type: ProviderType
    provider_name: str
    blob: bytes
    """The key as published; `key` reads it. One bad key must not hide the others of a list."""

    @property
    def key(self) -> RsaPublicKey:
        """The key itself, or `DecodeError`."""
        return RsaPublicKey.decode(self.blob)

    def encode(self) -> bytes:
        """Return the bytes; nothing is padded."""
        name = utf16.write(self.provider_name, _KEYS)
        fixed = PUBLISHED_KEY_LAYOUT.pack(len(self.blob), len(name), self.provider_type)
        return fixed + name + self.blob

    def fields(self) -> Iterator[Field]:
        """Show the structure, field by field."""
        name_size = len(utf16.write(self.provider_name, _KEYS))
        yield Field("ulKeyLen", 4, len(self.blob))
        yield Field("ulProviderLen", 4, name_size)
        yield Field("ulProviderType", 4, int(self.provider_type), self.provider_type.name)
        yield Field("sProviderName", name_size, self.provider_name)
        yield Field("aBuf", len(self.blob), self.blob.hex())


class PublishedKeys(msgspec.Struct, frozen=True, gc=False):
    """The public keys of a queue manager (MQDSPUBLICKEYS). [MQMQ 2.2.2]"""

    keys: tuple[PublishedKey, ...] = ()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a whole structure."""
        need(data, 0, KEY_LIST_LAYOUT.size, _KEYS)
        size, count = KEY_LIST_LAYOUT.unpack_from(data)
        if size != len(data):
            raise DecodeError(_KEYS, 0, f"size {size}, but {len(data)} bytes")
        keys = []
        offset = KEY_LIST_LAYOUT.size
        for _ in range(count):
            key, offset = _read_published_key(data, offset)
            keys.append(key)
        _check_end(data, offset, _KEYS)
        return cls(tuple(keys))

    def encode(self) -> bytes:
        """Return the bytes of the structure."""
        keys = b"".join([key.encode() for key in self.keys])
        return KEY_LIST_LAYOUT.pack(KEY_LIST_LAYOUT.size + len(keys), len(self.keys)) + keys

    def fields(self) -> Iterator[Field]:
        """Show the structure, one field per key."""
        yield Field("ulLen", 4, len(self.encode()))
        yield Field("cNumofKeys", 4, len(self.keys))
        for key in self.keys:
            yield group("MQDSPUBLICKEY", key.fields())


class UserCertificate(msgspec.Struct, frozen=True, gc=False):
    """A registered certificate (MQUSERSIGNCERT). [MQMQ 2.2.22]"""

    digest: bytes
    """The MD5 hash of `certificate`, by which directories find it; not checked here."""
    identifier: Guid
    certificate: bytes
    """X.509 in DER."""

    def encode(self) -> bytes:
        """Return the bytes; nothing is padded."""
        if len(self.digest) != 16:
            raise EncodeError(_CERTIFICATES, f"a digest of {len(self.digest)} bytes, not 16")
        fixed = CERTIFICATE_LAYOUT.pack(self.digest, self.identifier, len(self.certificate))
        return fixed + self.certificate

    def fields(self) -> Iterator[Field]:
        """Show the structure, field by field."""
        yield Field("Digest", 16, self.digest.hex())
        yield Field("Identifier", 16, str(self.identifier))
        yield Field("CertificateLength", 4, len(self.certificate))
        yield Field("Certificate", len(self.certificate), self.certificate.hex())


class UserCertificates(msgspec.Struct, frozen=True, gc=False):
    """The certificates of a user or queue manager (MQUSERSIGNCERTS). [MQMQ 2.2.21]"""

    certificates: tuple[UserCertificate, ...] = ()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a whole structure."""
        need(data, 0, 4, _CERTIFICATES)
        count = _U32.unpack_from(data)[0]
        certificates = []
        offset = 4
        for _ in range(count):
            need(data, offset, CERTIFICATE_LAYOUT.size, _CERTIFICATES)
            digest, identifier, size = CERTIFICATE_LAYOUT.unpack_from(data, offset)
            offset += CERTIFICATE_LAYOUT.size
            need(data, offset, size, _CERTIFICATES)
            certificate = data[offset : offset + size]
            certificates.append(UserCertificate(digest, Guid(identifier), certificate))
            offset += size
        _check_end(data, offset, _CERTIFICATES)
        return cls(tuple(certificates))

    def encode(self) -> bytes:
        """Return the bytes of the structure."""
        parts = [certificate.encode() for certificate in self.certificates]
        return _U32.pack(len(parts)) + b"".join(parts)

    def fields(self) -> Iterator[Field]:
        """Show the structure, one field per certificate."""
        yield Field("CertificateCount", 4, len(self.certificates))
        for certificate in self.certificates:
            yield group("MQUSERSIGNCERT", certificate.fields())


_KEYS: Final = "MQDSPUBLICKEYS"
_CERTIFICATES: Final = "MQUSERSIGNCERTS"


def _read_published_key(data: bytes, offset: int) -> tuple[PublishedKey, int]:
    need(data, offset, PUBLISHED_KEY_LAYOUT.size, _KEYS)
    key_size, name_size, provider_type = PUBLISHED_KEY_LAYOUT.unpack_from(data, offset)
    if provider_type not in (ProviderType.RSA_FULL, ProviderType.RSA_AES):
        raise DecodeError(_KEYS, offset + 8, f"provider type {provider_type}, not 1 or 24")
    name_start = offset + PUBLISHED_KEY_LAYOUT.size
    key_start = name_start + name_size
    end = key_start + key_size
    need(data, name_start, name_size + key_size, _KEYS)
    name = utf16.read_all(data, name_start, key_start, _KEYS)
    return PublishedKey(ProviderType(provider_type), name, data[key_start:end]), end


def _check_end(data: bytes, offset: int, where: str) -> None:
    if offset != len(data):
        raise DecodeError(where, offset, f"{len(data) - offset} bytes behind the end")


def _blob_fields(kind: int) -> Iterator[Field]:
    yield Field("bType", 1, kind)
    yield Field("bVersion", 1, BLOB_VERSION)
    yield Field("wReserved", 2, 0)
