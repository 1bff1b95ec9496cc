"""A real Active Directory for the tests: a Samba domain controller on a loopback address."""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import socket
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

REALM = "MQ.TEST"
ROOT = "DC=mq,DC=test"
HOST = "dc1.mq.test"
ADMINISTRATOR = "Administrator@mq.test"
PASSWORD = "Passw0rd.Of.The.Test"
SERVICES = "ldap,cldap,kdc,rpc"
ENDPOINTS = "epmapper,drsuapi,samr,lsarpc,netlogon"
UNSAFE_BUT_FAST = {**os.environ, "TDB_NO_FSYNC": "1"}
"""The databases of a domain that lives for a minute need not reach the disk."""

TRY_EVERY_S = 0.05
TRIES_MAX_COUNT = 1200
VALID_FROM = datetime(2020, 1, 1, tzinfo=UTC)
VALID_UNTIL = datetime(2099, 1, 1, tzinfo=UTC)


def why_not() -> str:
    """Return why no domain controller can run here; nothing if it can."""
    if shutil.which("samba") is None or shutil.which("samba-tool") is None:
        return "Samba is not installed: run scripts/ensure-samba"
    if not Path("/usr/share/samba/setup").exists():
        return "Samba lacks the files of new domains: run scripts/ensure-samba"
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((free_address(), 389))
    except PermissionError:
        return "a domain controller uses port 389, which this user may not open"
    return ""


def free_address() -> str:
    """Return a loopback address of this process: the ports of a domain controller are fixed."""
    return f"127.77.{os.getpid() >> 8 & 255}.{os.getpid() & 255 or 1}"


class DomainController:
    """A domain controller below a folder; it can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = free_address()
        self.ca_file = folder / "ca.pem"
        self._process: subprocess.Popen[bytes] | None = None

    def provision(self) -> None:
        """Create the domain and the certificates."""
        options = [
            f"--option={line}"
            for line in (
                "interfaces=lo",
                "bind interfaces only=yes",
                f"server services={SERVICES}",
                f"dcerpc endpoint servers={ENDPOINTS}",
                "dns update command=/bin/true",
            )
        ]
        command = [
            "samba-tool", "domain", "provision", f"--targetdir={self.folder}",
            f"--realm={REALM}", "--domain=MQTEST", "--host-name=dc1", "--server-role=dc",
            "--dns-backend=NONE", f"--adminpass={PASSWORD}", "--host-ip=127.0.0.1", *options,
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=UNSAFE_BUT_FAST
        )
        assert done.returncode == 0, done.stderr
        for name in ("etc", "log", "run", "ncalrpc", "cache", "state/sysvol/mq.test/scripts"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self._make_certificates()
        (self.folder / "etc/smb.conf").write_text(self._configuration(), encoding="utf-8")

    def _configuration(self) -> str:
        folder = self.folder
        settings = {
            "netbios name": "DC1",
            "realm": REALM,
            "workgroup": "MQTEST",
            "server role": "active directory domain controller",
            "server services": SERVICES,
            "dcerpc endpoint servers": ENDPOINTS,
            "interfaces": f"{self.address}/8",
            "bind interfaces only": "yes",
            "private dir": f"{folder}/private",
            "lock directory": str(folder),
            "state directory": f"{folder}/state",
            "cache directory": f"{folder}/cache",
            "binddns dir": f"{folder}/bind-dns",
            "pid directory": f"{folder}/run",
            "ncalrpc dir": f"{folder}/ncalrpc",
            "winbindd socket directory": f"{folder}/run/winbindd",
            "ntp signd socket directory": f"{folder}/run/ntp_signd",
            "log file": f"{folder}/log/log.%m",
            "logging": "file",
            "disable netbios": "yes",
            "dns update command": "/bin/true",
            "spn update command": "/bin/true",
            "tls enabled": "yes",
            "tls keyfile": f"{folder}/key.pem",
            "tls certfile": f"{folder}/cert.pem",
            "tls cafile": str(self.ca_file),
            "rpc server dynamic port range": "55000-55100",
        }
        return "[global]\n" + "".join(f"  {name} = {value}\n" for name, value in settings.items())

    def _make_certificates(self) -> None:
        authority_key, authority = make_certificate("Authority of the test")
        key, certificate = make_certificate(
            HOST, issuer=(authority_key, authority), addresses=[self.address]
        )
        write_certificate(self.ca_file, authority)
        write_certificate(self.folder / "cert.pem", certificate)
        write_key(self.folder / "key.pem", key)
        _, stranger = make_certificate("Authority that nobody knows")
        write_certificate(self.folder / "stranger.pem", stranger)

    def start(self) -> None:
        """Start, and wait until it answers."""
        with (self.folder / "samba.out").open("ab") as output:
            self._process = subprocess.Popen(
                ["samba", "-i", "-M", "single", "-s", str(self.folder / "etc/smb.conf")],
                env=UNSAFE_BUT_FAST,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        for _ in range(TRIES_MAX_COUNT):
            if self._answers():
                return
            assert self._process.poll() is None, (self.folder / "samba.out").read_text()
            # It is another program, which tells nobody when it is ready.
            time.sleep(TRY_EVERY_S)
        raise AssertionError("the domain controller does not answer")

    def _answers(self) -> bool:
        nobody = bytes.fromhex("300c020101600702010304008000")
        try:
            with socket.create_connection((self.address, 389), 1) as connection:
                connection.sendall(nobody)
                return bool(connection.recv(64))
        except OSError:
            return False

    def stop(self) -> None:
        """Stop it, and wait until it is gone."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(20)
            self._process = None


Issuer = tuple[ec.EllipticCurvePrivateKey, x509.Certificate]


def make_certificate(
    name: str, *, issuer: Issuer | None = None, addresses: list[str] | None = None
) -> Issuer:
    """Make a key and a certificate: of an authority, or of a server that one has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer, signed_by = (key, subject) if issuer is None else (issuer[0], issuer[1].subject)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signed_by)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(VALID_FROM)
        .not_valid_after(VALID_UNTIL)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer is not None:
        names = [x509.DNSName(name)]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses or []]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    else:
        builder = builder.add_extension(
            x509.KeyUsage(
                digital_signature=True, content_commitment=False, key_encipherment=False,
                data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
                encipher_only=False, decipher_only=False,
            ),
            critical=True,
        )  # fmt: skip
    return key, builder.sign(signer, hashes.SHA256())


def write_certificate(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    path.chmod(0o600)
