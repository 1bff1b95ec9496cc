"""TLS on the application interface, with a certificate made for the test."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from openmsmq.api import messages as api
from openmsmq.client.blocking import connect
from openmsmq.client.settings import Settings
from openmsmq.model.errors import AccessDenied
from openmsmq.model.queue import AccessMode
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.storage.memory import MemoryStore
from tests.runtime.raw_client import RawClient
from tests.server_thread import start_server


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that vouches for itself, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    # Times around the present, whatever that is: the machine's clock decides.
    begin = datetime.datetime.fromtimestamp(Path(__file__).stat().st_mtime, datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(begin + datetime.timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return file


def test_a_client_that_trusts_the_certificate_works_over_tls(tmp_path, certificate):
    context = ssl.create_default_context(cafile=str(certificate))
    with (
        start_server(str(tmp_path), store=MemoryStore(), tls_cert=str(certificate)) as server,
        RawClient.tcp(server.host, server.port, context) as client,
    ):
        assert isinstance(client.hello(), api.Welcome)
        client.create()
        assert isinstance(
            client.send(client.open(AccessMode.SEND), *[b"x" * 100_000] * 20), api.Sent
        )
        received = client.receive_bodies(client.open(AccessMode.RECEIVE))
        assert received[0] == b"x" * 100_000


def test_long_answers_arrive_over_tls_with_those_behind_them(tmp_path, certificate):
    context = ssl.create_default_context(cafile=str(certificate))
    size, count = 100_000, 40
    with (
        start_server(str(tmp_path), store=MemoryStore(), tls_cert=str(certificate)) as server,
        RawClient.tcp(server.host, server.port, context) as client,
    ):
        assert isinstance(client.hello(), api.Welcome)
        client.create()
        client.send(client.open(AccessMode.SEND), *[b"x" * size] * count)
        reading = client.open(AccessMode.RECEIVE)
        long = api.FetchPackets(reading.handle, 0, 1 << 40, bytes_max=16 << 20)
        calls = client.submit(*[long, api.GetQueue(r"private$\orders")] * 4)
        for place, call in enumerate(calls):
            reply = client.answer(call)
            if place % 2:
                assert reply.queues[0].message_count == count
            else:
                assert bytes(reply.entries).count(b"x" * size) == count


def test_a_refusal_and_the_end_may_come_in_one_piece(tmp_path, certificate):
    file = tmp_path / "token"
    file.write_text("s3cret", encoding="utf-8")
    with start_server(
        str(tmp_path), store=MemoryStore(), tls_cert=str(certificate), token_file=str(file)
    ) as server:
        client = Settings(
            address=f"localhost:{server.port}",
            tls=str(certificate),
            token="wrong",
            reconnect_within_s=0,
        )
        # Whether the end of TLS comes with the answer or after it is a matter of luck.
        for _ in range(20):
            with pytest.raises(AccessDenied, match="the token is missing or wrong"):
                connect(client)


def test_a_client_without_tls_is_not_served(tmp_path, certificate):
    with (
        start_server(
            str(tmp_path), store=MemoryStore(), tls_cert=str(certificate), log_level="error"
        ) as server,
        RawClient.tcp(server.host, server.port) as client,
        pytest.raises(ConnectionError),
    ):
        client.hello()


def test_a_key_of_another_certificate_is_refused(tmp_path, certificate):
    other = tmp_path / "other.key"
    other.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = start_server(
        str(tmp_path), store=MemoryStore(), tls_cert=str(certificate), tls_key=str(other)
    )
    with pytest.raises(ConfigError, match="cannot use the certificate"):
        server.__enter__()
