"""What `cryptography` no longer has and old peers still use, by PyCryptodome (decision 0034).

The package comes with the extra `legacy`, and is imported only where one of these is used.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from openmsmq.model.errors import InvalidParameter

if TYPE_CHECKING:
    from Crypto.Hash.MD2 import MD2Hash
    from Crypto.Hash.MD4 import MD4Hash
    from Crypto.Math.Numbers import Integer

ADVICE: Final = "needs the package pycryptodome: pip install 'openmsmq[legacy]'"
RC2_BLOCK_BYTES: Final = 8

_LEAST_DISTANCE_BITS: Final = 100
"""How far the two primes of a key are apart, less than half the length of the key. [FIPS 186-5]"""


def is_installed() -> bool:
    """Whether the package is there."""
    return find_spec("Crypto") is not None


@contextlib.contextmanager
def _wanted(what: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError:
        raise InvalidParameter(f"{what} {ADVICE}") from None


def md2() -> MD2Hash:
    """Start to hash with MD2. [RFC 1319]"""
    with _wanted("MD2"):
        from Crypto.Hash import MD2
    return MD2.new()


def md4() -> MD4Hash:
    """Start to hash with MD4. [RFC 1320]"""
    with _wanted("MD4"):
        from Crypto.Hash import MD4
    return MD4.new()


def rc2(key: bytes, effective_bits: int, data: bytes, *, encrypts: bool) -> bytes:
    """Encrypt or decrypt whole blocks with RC2, in CBC mode with a zero start. [RFC 2268]"""
    with _wanted("RC2"):
        from Crypto.Cipher import ARC2
    start = bytes(RC2_BLOCK_BYTES)
    cipher = ARC2.new(key, ARC2.MODE_CBC, iv=start, effective_keylen=effective_bits)
    return cipher.encrypt(data) if encrypts else cipher.decrypt(data)


def primes(bits: int, exponent: int, random_bytes: Callable[[int], bytes]) -> tuple[int, int]:
    """Draw the primes of an RSA key from random bytes that are handed in. [FIPS 186-5 A.1]

    `cryptography` refuses to make keys of 512 bits, which Base providers have, and takes its own
    random bytes, with which nothing could be repeated.
    """
    with _wanted("a key of 512 bits"):
        from Crypto.Math.Primality import generate_probable_prime
    half = bits // 2
    # The two highest bits are set, so that the product of two has all its bits.
    least = 3 << half - 2

    def draw(other: int) -> int:
        def fits(candidate: Integer) -> bool:
            number = int(candidate)
            is_far = abs(number - other).bit_length() > half - _LEAST_DISTANCE_BITS
            return number > least and is_far and math.gcd(number - 1, exponent) == 1

        return int(
            generate_probable_prime(exact_bits=half, randfunc=random_bytes, prime_filter=fits)
        )

    first = draw(0)
    second = draw(first)
    return max(first, second), min(first, second)
