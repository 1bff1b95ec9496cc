"""Certificates: made, read, and refused."""

from __future__ import annotations

import contextlib
import hashlib
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.signatures.certificates import (
    CERTIFICATE_MAX_BYTES,
    COMMON_NAME_MAX_CHARACTERS,
    SERIAL_MAX_BITS,
    BadCertificate,
    digest,
    make_certificate,
    public_key,
)
from tests.strategies.keys import certificate, changed, private_key


@pytest.mark.parametrize("bits", [512, 1024, 2048])
def test_a_certificate_carries_its_key_and_is_signed_with_it(bits: int) -> None:
    key = private_key(bits)
    der = make_certificate(key, r"CONTOSO\anna", 1_700_000_000, 1_800_000_000, 42)
    read = x509.load_der_x509_certificate(der)
    read.verify_directly_issued_by(read)
    assert read.serial_number == 42
    assert read.subject.rfc4514_string() == r"CN=CONTOSO\\anna"
    assert read.not_valid_before_utc == datetime.fromtimestamp(1_700_000_000, UTC)
    assert read.not_valid_after_utc == datetime.fromtimestamp(1_800_000_000, UTC)
    assert isinstance(read.signature_hash_algorithm, hashes.SHA256)
    assert public_key(der, bits).public_numbers().n == key.public.modulus


def test_the_same_inputs_make_the_same_certificate() -> None:
    one, other = (make_certificate(private_key(), "me", 0, 1, 7) for _ in range(2))
    assert one == other


@pytest.mark.spec("MQMQ-2.3.9.3-01", "MQMQ-2.3.10.7-01")
def test_a_certificate_goes_by_its_md5_hash() -> None:
    assert digest(certificate()) == hashlib.md5(certificate()).digest()


@pytest.mark.parametrize("name", ["", "x" * (COMMON_NAME_MAX_CHARACTERS + 1)])
def test_names_that_no_certificate_can_have_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="common name"):
        make_certificate(private_key(), name, 0, 1, 1)


@pytest.mark.parametrize("serial", [0, -1, 1 << SERIAL_MAX_BITS])
def test_serial_numbers_that_no_certificate_can_have_are_refused(serial: int) -> None:
    with pytest.raises(ValueError, match="serial"):
        make_certificate(private_key(), "me", 0, 1, serial)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_certificate_or_a_bad_one(data: bytes) -> None:
    with pytest.raises(BadCertificate):
        public_key(data)


@given(st.data())
def test_a_damaged_certificate_raises_nothing_else(data: st.DataObject) -> None:
    der = certificate()
    at = data.draw(st.integers(0, len(der) - 1))
    with contextlib.suppress(BadCertificate):
        public_key(changed(der, at, data.draw(st.integers(1, 255))))


@given(st.integers(0, 500))
def test_a_cut_certificate_is_bad(size: int) -> None:
    if size < len(certificate()):
        with pytest.raises(BadCertificate):
            public_key(certificate()[:size])


def test_a_certificate_longer_than_a_packet_carries_is_bad() -> None:
    with pytest.raises(BadCertificate, match=str(CERTIFICATE_MAX_BYTES)):
        public_key(bytes(CERTIFICATE_MAX_BYTES + 1))


def test_a_certificate_with_a_short_key_is_bad_unless_the_policy_takes_it() -> None:
    with pytest.raises(BadCertificate, match="512 bits; 1024 to"):
        public_key(certificate(512))
    assert public_key(certificate(512), 512).key_size == 512


def test_a_certificate_whose_key_is_not_of_rsa_is_bad() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "me")])
    day = datetime(2026, 1, 1)  # noqa: DTZ001
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, day, day)
    with pytest.raises(BadCertificate, match="not of RSA"):
        public_key(made.sign(key, hashes.SHA256()).public_bytes(Encoding.DER))
