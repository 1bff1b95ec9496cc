"""By what this queue manager proves itself over TLS, and whom it believes.

The library checks that a certificate is genuine: it, or whoever has issued it, is among those that
an operator trusts, its time is right, and the other end has its key. Here is decided for whom it is
good: which rule of `[peers]` names it. The files are read again when they have changed, so that a
certificate can be replaced without a restart. Of the own certificate and of the authorities the old
ones hold until the new ones can be used; a file of a peer that cannot be used trusts nobody.
"""

from __future__ import annotations

import re
import ssl
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from openmsmq.model.peers import PeerRule
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.peer_rules import PeerRules
from openmsmq.runtime.config.session_tls_table import SessionTlsTable
from openmsmq.runtime.limits import (
    TLS_FILE_MAX_BYTES,
    TLS_PEER_FILES_MAX_COUNT,
    TLS_VOUCHED_MAX_COUNT,
    TLS_WARN_S,
)
from openmsmq.runtime.owner_file import file_signature
from openmsmq.runtime.sessions.tls_transport import TlsFailed
from openmsmq.security.peer_certificates import PeerCertificate, fingerprint, read_peer_certificate
from openmsmq.security.signatures.certificates import BadCertificate

_OTHERS: Final = 0o077
_DAY_S: Final = 24 * 3600
_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----"
)


class Proof(msgspec.Struct, frozen=True):
    """Who is at the other end of a connection, and by what."""

    rule: PeerRule
    certificate: PeerCertificate
    authority: str = ""
    """The fingerprint of the authority that vouches for it; empty for one that a rule pins."""


class _Loaded(msgspec.Struct, frozen=True):
    """What is needed to shake hands."""

    own: PeerCertificate
    accepting: ssl.SSLContext
    dialling: ssl.SSLContext
    authorities: frozenset[str]


class SessionTrust:
    """The certificates of sessions; `look` reads them again if their files have changed."""

    def __init__(
        self, table: SessionTlsTable, data: str, rules: PeerRules, clock_s: Callable[[], int]
    ) -> None:
        """Raises `ConfigError` if the files cannot be used."""
        self.rules: Final = rules
        self._table = table
        self._data = data
        self._clock_s = clock_s
        self._seen = self._signature()
        pinned, problems = self._load_pinned()
        if problems:
            raise ConfigError(problems[0])
        self._pinned = _fingerprints(pinned)
        self._loaded = self._load(pinned)
        for rule in rules.need_tls:
            if not self._pins(rule) and not rule.certificate_names:
                raise ConfigError(
                    f"[peers] {rule.name} has tls = true, and no certificate is known that is good "
                    f"for it: put it into {table.peer_certificates or 'peer_certificates'}/"
                    f"{rule.name}.pem, or give certificate_names"
                )
        self._vouched: dict[str, str] = {}
        self._warned_day = 0

    @property
    def accepting(self) -> ssl.SSLContext:
        """What to accept connections with."""
        return self._loaded.accepting

    @property
    def dialling(self) -> ssl.SSLContext:
        """What to make connections with."""
        return self._loaded.dialling

    @property
    def own(self) -> PeerCertificate:
        """The certificate that others see."""
        return self._loaded.own

    # Changes.

    def look(self) -> bool:
        """Read the files again if they have changed; says whether something else holds now.

        Raises `ConfigError` for files that cannot be used, once.
        """
        return self._signature() != self._seen and self.reload()

    def reload(self) -> bool:
        """Read the files again; as `look`."""
        self._seen = self._signature()
        pinned, problems = self._load_pinned()
        # Whoever was taken out is not believed, whatever is wrong with other files.
        self._pinned = _fingerprints(pinned)
        self._vouched.clear()
        try:
            self._loaded = self._load(pinned)
        except ConfigError as error:
            problems.append(f"{error}; the old one is still used")
        if problems:
            raise ConfigError(". ".join(problems))
        return True

    def warning(self) -> str:
        """Say that the own certificate is at its end, once a day; nothing, if it is not."""
        now_s = self._clock_s()
        problem = self.own.problem(now_s)
        if not problem and self.own.not_after_s - now_s > TLS_WARN_S:
            return ""
        today = now_s // _DAY_S
        if self._warned_day == today:
            return ""
        self._warned_day = today
        days = (self.own.not_after_s - now_s) // _DAY_S
        return problem or f"it expires in {days} days: replace it"

    # Judging.

    def judge(
        self, shown: ssl.SSLObject, address: str, wanted: Sequence[PeerRule] | None = None
    ) -> Proof:
        """Return who shows a certificate that the library has found genuine, or raise `TlsFailed`.

        `wanted` are the rules one of which it has to be good for; without, any rule is.
        """
        certificate = self._read(shown)
        authority = self._authority(shown, certificate.fingerprint)
        named = [rule for rule in self.rules.all if self._belongs(certificate, authority, rule)]
        if not named:
            raise TlsFailed(
                "no rule of [peers] names its certificate, for "
                f"{', '.join(sorted(certificate.names)) or 'no name'}; if you trust it, write "
                f'certificates = ["{certificate.fingerprint}"] into one'
            )
        refusing = [rule.name for rule in named if rule.refuse]
        if refusing:
            raise TlsFailed(f"[peers] {refusing[0]} has its certificate, and refuses it")
        if wanted is not None and not any(rule in wanted for rule in named):
            raise TlsFailed(
                f"its certificate is that of [peers] {named[0].name}, and "
                f"{' or '.join(rule.name for rule in wanted)} is at {address}"
            )
        for rule in named if wanted is None else [rule for rule in named if rule in wanted]:
            if self.rules.allows(rule, address):
                is_pinned = certificate.fingerprint in self._pins(rule)
                return Proof(rule, certificate, "" if is_pinned else authority)
        raise TlsFailed(
            f"its certificate is that of [peers] {named[0].name}, which is not at {address}"
        )

    def why_not(self, proof: Proof) -> str:
        """Return why a certificate that was good is not good any more; nothing, if it is."""
        problem = proof.certificate.problem(self._clock_s())
        if problem:
            return f"its certificate is no longer good: {problem}"
        if proof.authority:
            is_trusted = proof.authority in self._loaded.authorities
        else:
            is_trusted = proof.certificate.fingerprint in self._pins(proof.rule)
        return "" if is_trusted else "its certificate is no longer trusted"

    def _read(self, shown: ssl.SSLObject) -> PeerCertificate:
        der = shown.getpeercert(binary_form=True)
        if der is None:
            raise TlsFailed("it showed no certificate, and has to")
        try:
            certificate = read_peer_certificate(der)
        except BadCertificate as error:
            raise TlsFailed(f"its certificate is refused: {error}") from None
        # The library has looked at it, but not in a session that it has resumed.
        problem = certificate.problem(self._clock_s())
        if problem:
            raise TlsFailed(f"its certificate is refused: {problem}")
        return certificate

    def _belongs(self, certificate: PeerCertificate, authority: str, rule: PeerRule) -> bool:
        if certificate.fingerprint in self._pins(rule):
            return True
        names = {name.lower() for name in rule.certificate_names}
        return bool(authority) and not names.isdisjoint(certificate.names)

    def _pins(self, rule: PeerRule) -> frozenset[str]:
        return self._pinned.get(rule.name, frozenset()) | set(rule.certificates)

    def _authority(self, shown: ssl.SSLObject, leaf: str) -> str:
        """Return which authority vouches for a certificate; empty for none.

        The certificates of peers are trusted for themselves. One that may sign others must not
        vouch for names, so it counts at whom the chain has ended.
        """
        chain = verified_chain(shown)
        if not chain:
            # It was checked when the session was new that is resumed now.
            return self._vouched.get(leaf, "")
        last = fingerprint(chain[-1])
        if last not in self._loaded.authorities:
            return ""
        self._vouched.pop(leaf, None)
        self._vouched[leaf] = last
        if len(self._vouched) > TLS_VOUCHED_MAX_COUNT:
            del self._vouched[next(iter(self._vouched))]
        return last

    # Files.

    def _path(self, file: str) -> Path:
        return Path(self._data) / file

    def _signature(self) -> tuple[object, ...]:
        table = self._table
        paths = [
            self._path(file) for file in (table.certificate, table.key, table.authorities) if file
        ]
        return tuple(map(file_signature, [*paths, *self._peer_files()]))

    def _peer_files(self) -> list[Path]:
        if not self._table.peer_certificates:
            return []
        return sorted(self._path(self._table.peer_certificates).glob("*.pem"))

    def _load(self, pinned: Mapping[str, list[bytes]]) -> _Loaded:
        table = self._table
        authorities = read_certificates(self._path(table.authorities)) if table.authorities else []
        anchors = {*authorities, *(der for ders in pinned.values() for der in ders)}
        return _Loaded(
            own=self._own_certificate(),
            accepting=self._context(ssl.PROTOCOL_TLS_SERVER, anchors),
            dialling=self._context(ssl.PROTOCOL_TLS_CLIENT, anchors),
            authorities=frozenset(map(fingerprint, authorities)),
        )

    def _own_certificate(self) -> PeerCertificate:
        path = self._path(self._table.certificate)
        try:
            return read_peer_certificate(read_certificates(path)[0])
        except BadCertificate as error:
            raise ConfigError(f"cannot use the certificate in {path}: {error}") from None

    def _load_pinned(self) -> tuple[dict[str, list[bytes]], list[str]]:
        """Read the certificates that are for a rule; give them by its name, and what is wrong.

        They are in a file that is called after it, or it has their fingerprints.
        """
        if not self._table.peer_certificates:
            return {}, []
        folder = self._path(self._table.peer_certificates)
        if not folder.is_dir():
            return {}, [f"[session_tls] peer_certificates: {folder} is no directory"]
        files = self._peer_files()
        problems: list[str] = []
        if len(files) > TLS_PEER_FILES_MAX_COUNT:
            problems.append(
                f"[session_tls] peer_certificates has {len(files)} files; "
                f"{TLS_PEER_FILES_MAX_COUNT} are possible"
            )
        found: dict[str, list[bytes]] = {}
        for path in files[:TLS_PEER_FILES_MAX_COUNT]:
            try:
                found[path.stem] = self._certificates_of_peers(path)
            except ConfigError as error:
                problems.append(str(error))
        return found, problems

    def _certificates_of_peers(self, path: Path) -> list[bytes]:
        ders = read_certificates(path)
        if path.stem not in {rule.name for rule in self.rules.all}:
            wanted = {each for rule in self.rules.all for each in rule.certificates}
            ders = [der for der in ders if fingerprint(der) in wanted]
        if not ders:
            raise ConfigError(
                f"{path} belongs to no rule: call it NAME.pem after [peers.NAME], or put the "
                "fingerprints of its certificates into one"
            )
        return ders

    def _context(self, kind: Any, anchors: set[bytes]) -> ssl.SSLContext:
        table = self._table
        certificate = self._path(table.certificate)
        key = self._path(table.key) if table.key else certificate
        context = ssl.SSLContext(kind)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        # One that an operator trusts need not have issued itself.
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        # Each session is proven anew, as far as the library lets us say so.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        if kind is ssl.PROTOCOL_TLS_SERVER:
            context.num_tickets = 0
        _check_key(key)
        try:
            context.load_cert_chain(certificate, key, _no_password)
            if anchors:
                context.load_verify_locations(cadata=b"".join(anchors))
        except (OSError, ssl.SSLError) as error:
            reason = getattr(error, "reason", None) or error.strerror or str(error)
            raise ConfigError(
                f"cannot use the certificate in {certificate} with the key in {key}: "
                f"{reason.replace('_', ' ').lower()}"
            ) from None
        return context


def open_trust(
    table: SessionTlsTable, data: str, rules: PeerRules, clock_s: Callable[[], int]
) -> SessionTrust | None:
    """Read the certificates, or raise `ConfigError`; None where no session is over TLS."""
    if not table.certificate:
        if rules.need_tls:
            raise ConfigError(
                f"[peers] {rules.need_tls[0].name} has tls = true, and [session_tls] has no "
                "certificate: make one with openmsmq peer certificate"
            )
        return None
    names = {rule.name for rule in rules.all}
    for name in table.ports:
        if name not in names:
            raise ConfigError(f"[session_tls] ports: there is no rule [peers.{name}]")
    return SessionTrust(table, data, rules, clock_s)


def _fingerprints(pinned: Mapping[str, list[bytes]]) -> dict[str, frozenset[str]]:
    return {name: frozenset(map(fingerprint, ders)) for name, ders in pinned.items()}


def read_certificates(path: Path) -> list[bytes]:
    """Read the certificates of a file, one at least, in DER; or raise `ConfigError`."""
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            text = file.read(TLS_FILE_MAX_BYTES)
        ders = [ssl.PEM_cert_to_DER_cert(found) for found in _CERTIFICATE.findall(text)]
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path} has a certificate that cannot be read: {error}") from None
    if not ders:
        raise ConfigError(f"{path} has no certificate in PEM")
    return ders


def verified_chain(shown: ssl.SSLObject) -> list[bytes]:
    """Return the chain by which the library has found a certificate genuine, in DER, leaf first.

    Empty for a session that was resumed. Python 3.13 has made public what it had before.
    """
    public = getattr(shown, "get_verified_chain", None)
    if public is not None:
        return list(public() or ())
    inner = shown._sslobj  # type: ignore[attr-defined] # noqa: SLF001
    return [
        ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in inner.get_verified_chain() or ()
    ]


def _check_key(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ConfigError(f"cannot read the key {path}: {error.strerror}") from None
    if stat.S_IMODE(mode) & _OTHERS:
        raise ConfigError(
            f"others than its owner may use the key {path}, so it is not used: chmod 600 {path}"
        )


def _no_password() -> str:
    raise ConfigError("the key of [session_tls] is encrypted: give one that is not")
