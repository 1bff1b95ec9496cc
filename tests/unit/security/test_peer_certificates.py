"""Certificates of queue managers: made, read, and their time."""

from __future__ import annotations

import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.peer_certificates import (
    certificate_pem,
    make_peer_certificate,
    read_peer_certificate,
)
from openmsmq.security.signatures.certificates import BadCertificate
from tests.runtime.session_certificates import Identity

KEY = ec.generate_private_key(ec.SECP256R1())
DER = make_peer_certificate(KEY, "Shop.example", 1_000_000, 2_000_000, 7)


def test_a_certificate_says_who_it_is_for_and_when():
    found = read_peer_certificate(DER)
    assert found.fingerprint == hashlib.sha256(DER).hexdigest()
    assert found.names == {"shop.example"}
    assert (found.not_before_s, found.not_after_s) == (1_000_000, 2_000_000)


@pytest.mark.parametrize(
    ("now_s", "words"),
    [
        (999_999, "it is not valid before 1970-01-12T13:46:40Z"),
        (1_000_000, ""),
        (2_000_000, ""),
        (2_000_001, "it has expired on 1970-01-24T03:33:20Z"),
    ],
)
def test_it_is_good_only_in_its_time(now_s, words):
    assert read_peer_certificate(DER).problem(now_s) == words


def test_one_that_is_made_vouches_for_nobody_else_and_is_good_for_both_ends():
    made = x509.load_der_x509_certificate(DER)
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    uses = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(uses) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    made.verify_directly_issued_by(made)
    assert x509.load_pem_x509_certificate(certificate_pem(DER)) == made


def test_the_common_name_counts_only_where_there_is_no_other():
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Old")])
    other = Identity("new")
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=other.key.public_key(),
        serial_number=1,
        not_valid_before=other.certificate.not_valid_before_utc.replace(tzinfo=None),
        not_valid_after=other.certificate.not_valid_after_utc.replace(tzinfo=None),
    )
    plain = builder.sign(other.key, other.certificate.signature_hash_algorithm)
    assert read_peer_certificate(plain.public_bytes(Encoding.DER)).names == {"old"}
    both = builder.add_extension(
        x509.SubjectAlternativeName([x509.DNSName("New")]), critical=False
    ).sign(other.key, other.certificate.signature_hash_algorithm)
    assert read_peer_certificate(both.public_bytes(Encoding.DER)).names == {"new"}


@pytest.mark.parametrize("name", ["", "x" * 65, "Übung"])
def test_a_name_that_a_certificate_cannot_have_is_refused(name):
    with pytest.raises(ValueError, match="is no name for a certificate"):
        make_peer_certificate(KEY, name, 1, 2, 3)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_certificate_or_a_bad_one(data):
    with pytest.raises(BadCertificate):
        read_peer_certificate(data)
    with pytest.raises(BadCertificate):
        read_peer_certificate(DER[: len(DER) // 2] + data)
