"""Primes for RSA keys, from random bytes that are handed in. [FIPS 186-5 A.1]

Libraries refuse to make keys of 512 bits, which Base providers have, and take their own random
bytes, with which nothing could be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

_SMALL: Final = tuple(
    number
    for number in range(3, 2000, 2)
    if all(number % small for small in range(3, math.isqrt(number) + 1, 2))
)
TESTS: Final = 40
"""Rounds of Miller-Rabin: a number that is no prime passes all with a chance below 2**-80."""

CANDIDATES_MAX_COUNT: Final = 100_000
"""A source of random bytes that gives no prime in so many is none."""

_LEAST_DISTANCE_BITS: Final = 100


def is_prime(number: int, random_bytes: Callable[[int], bytes]) -> bool:
    """Whether an odd number above 2000 is prime, with bases drawn at random."""
    if any(number % small == 0 for small in _SMALL):
        return False
    odd, twos = number - 1, 0
    while not odd & 1:
        odd >>= 1
        twos += 1
    size = (number.bit_length() + 7) // 8
    for _ in range(TESTS):
        base = int.from_bytes(random_bytes(size), "big") % (number - 3) + 2
        if not _passes(number, base, odd, twos):
            return False
    return True


def _passes(number: int, base: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False


def prime(bits: int, exponent: int, random_bytes: Callable[[int], bytes]) -> int:
    """Draw a prime of `bits` bits, a multiple of 8, whose predecessor `exponent` does not divide.

    Its two highest bits are set, so that the product of two has all its bits.
    """
    for _ in range(CANDIDATES_MAX_COUNT):
        candidate = int.from_bytes(random_bytes(bits // 8), "big") | 3 << bits - 2 | 1
        if math.gcd(candidate - 1, exponent) == 1 and is_prime(candidate, random_bytes):
            return candidate
    raise ValueError("the source of random bytes gives no primes")


def pair(bits: int, exponent: int, random_bytes: Callable[[int], bytes]) -> tuple[int, int]:
    """Draw two primes for a modulus of `bits` bits, far enough from each other."""
    half = bits // 2
    first = prime(half, exponent, random_bytes)
    for _ in range(CANDIDATES_MAX_COUNT):
        second = prime(half, exponent, random_bytes)
        if abs(first - second).bit_length() > half - _LEAST_DISTANCE_BITS:
            return max(first, second), min(first, second)
    raise ValueError("the source of random bytes gives the same primes again and again")
