"""RSA as the protocol uses it: PKCS #1 v1.5, with numbers little-endian on the wire. [RFC 8017]

Private operations are those of the library. Public ones need no secret, so that encryption pads
here, with random bytes that are handed in: the same inputs give the same packet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import NoDigestInfo

from openmsmq.model.errors import InvalidParameter, MsmqError
from openmsmq.model.message import HashAlgorithm
from openmsmq.security import legacy
from openmsmq.security.hashes import digest_info
from openmsmq.wire.keys import KeyUse, RsaPublicKey

RSA_MIN_BITS: Final = 512
"""The shortest keys there are, of Base providers; a policy has its own, higher bound."""

RSA_MAX_BITS: Final = 8192
"""Longer keys prove nothing more, and make every check dear."""

EXPONENT_MIN: Final = 3
EXPONENT_MAX: Final = 0xFFFF_FFFF
"""The largest public exponent that a PUBLICKEYBLOB can carry."""

USUAL_EXPONENT: Final = 65_537
_CANNOT_SIGN: Final = 0xC00E_0080
_PADDING: Final = PKCS1v15()
_NO_DIGEST_INFO: Final = NoDigestInfo()
_PKCS1_OVERHEAD_BYTES: Final = 11


class PrivateKey:
    """An RSA key pair. The private part never leaves it but by `to_pem`, for key files."""

    __slots__ = ("_key", "public")

    public: RsaPublicKey

    def __init__(self, key: rsa.RSAPrivateKey, use: KeyUse = KeyUse.KEY_EXCHANGE) -> None:
        numbers = key.public_key().public_numbers()
        problem = key_problem(numbers.n, numbers.e, RSA_MIN_BITS)
        if problem:
            raise InvalidParameter(f"an RSA key with {problem}")
        self._key = key
        bits = numbers.n.bit_length() + 7 & ~7
        self.public = RsaPublicKey(bits, numbers.e, numbers.n, use)

    @classmethod
    def from_pem(cls, pem: bytes, use: KeyUse = KeyUse.KEY_EXCHANGE) -> Self:
        """Read a key file without password."""
        try:
            key = serialization.load_pem_private_key(pem, password=None)
        except Exception:
            # The library says what is wrong in many ways; none may quote the key.
            raise InvalidParameter("no private key in PEM without password") from None
        if not isinstance(key, rsa.RSAPrivateKey):
            raise InvalidParameter("a private key that is not of RSA")
        return cls(key, use)

    @classmethod
    def from_primes(
        cls,
        first: int,
        second: int,
        exponent: int = USUAL_EXPONENT,
        use: KeyUse = KeyUse.KEY_EXCHANGE,
    ) -> Self:
        """Make the key of two primes."""
        private = pow(exponent, -1, (first - 1) * (second - 1))
        numbers = rsa.RSAPrivateNumbers(
            first,
            second,
            private,
            rsa.rsa_crt_dmp1(private, first),
            rsa.rsa_crt_dmq1(private, second),
            rsa.rsa_crt_iqmp(first, second),
            rsa.RSAPublicNumbers(exponent, first * second),
        )
        return cls(numbers.private_key(), use)

    @classmethod
    def generate(
        cls, bits: int, random_bytes: Callable[[int], bytes], use: KeyUse = KeyUse.KEY_EXCHANGE
    ) -> Self:
        """Make a new key of the random bytes that `random_bytes` gives."""
        if not RSA_MIN_BITS <= bits <= RSA_MAX_BITS or bits % 16:
            raise InvalidParameter(
                f"a key of {bits} bits; {RSA_MIN_BITS} to {RSA_MAX_BITS} in steps of 16 can be made"
            )
        first, second = legacy.primes(bits, USUAL_EXPONENT, random_bytes)
        return cls.from_primes(first, second, use=use)

    @property
    def library_key(self) -> rsa.RSAPrivateKey:
        """The key as the library has it, to sign certificates."""
        return self._key

    def to_pem(self) -> bytes:
        """Return the key for its file: PKCS #8 in PEM, without password."""
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def sign(self, algorithm: HashAlgorithm, digest: bytes) -> bytes:
        """Sign a digest; least significant byte first, as the wire has it."""
        try:
            signature = self._key.sign(digest_info(algorithm, digest), _PADDING, _NO_DIGEST_INFO)
        except ValueError:
            raise MsmqError.from_code(
                _CANNOT_SIGN,
                f"a key of {self.public.bit_length} bits is too short for a signature with "
                f"{algorithm.name}",
            ) from None
        return signature[::-1]

    def decrypt(self, encrypted: bytes) -> bytes | None:
        """Decrypt a session key, most significant byte first; None if it is no number for us.

        A wrong one gives other bytes of any size and no error: so says the library's defence
        against those who would guess keys by trying.
        """
        try:
            return self._key.decrypt(encrypted, _PADDING)
        except ValueError:
            return None

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.bit_length} bits)"


def key_problem(modulus: int, exponent: int, smallest_bits: int) -> str:
    """Return what is wrong with a public key, or nothing."""
    bits = modulus.bit_length()
    if not smallest_bits <= bits <= RSA_MAX_BITS:
        return f"{bits} bits; {smallest_bits} to {RSA_MAX_BITS} are accepted"
    if not EXPONENT_MIN <= exponent <= EXPONENT_MAX or not exponent & 1 or not modulus & 1:
        return "an impossible modulus or exponent"
    return ""


def encrypt(key: RsaPublicKey, secret: bytes, random_bytes: Callable[[int], bytes]) -> bytes:
    """Encrypt a short secret, most significant byte first. [RFC 8017 7.2.1]

    Python's `pow` takes time by the numbers it gets. Here the exponent is public and small, and
    the number is a secret that is used once and not chosen by anybody who could watch.
    """
    size = (key.modulus.bit_length() + 7) // 8
    fill = size - 3 - len(secret)
    if fill < _PKCS1_OVERHEAD_BYTES - 3:
        raise InvalidParameter(f"a key of {8 * size} bits cannot encrypt {len(secret)} bytes")
    padded = b"\0\2" + _nonzero_bytes(fill, random_bytes) + b"\0" + secret
    encrypted = pow(int.from_bytes(padded, "big"), key.exponent, key.modulus)
    return encrypted.to_bytes(key.bit_length // 8, "big")


def _nonzero_bytes(size: int, random_bytes: Callable[[int], bytes]) -> bytes:
    found = random_bytes(size).replace(b"\0", b"")
    # A source that gives nothing but zeros would never end.
    for _ in range(64):
        if len(found) >= size:
            return found[:size]
        found += random_bytes(size - len(found)).replace(b"\0", b"")
    raise InvalidParameter("the source of random bytes gives zeros")


def signed_info(key: rsa.RSAPublicKey, signature: bytes) -> bytes | None:
    """Open a signature, most significant byte first: what was signed, or None. [RFC 8017 8.2.2]"""
    try:
        return key.recover_data_from_signature(signature, _PADDING, None)
    except Exception:
        # Of a hostile key or signature the library may say anything; it means no.
        return None
