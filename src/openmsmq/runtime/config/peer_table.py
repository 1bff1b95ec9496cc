"""The table `[peers]` of a configuration file: who other queue managers are, and who is let in.

`strict` and `silence_s` are for all of them; each table below it, such as `[peers.office]`, is one
rule. A rule that would do nothing, or something else than it looks like, is refused.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Final

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.limits import PEER_SILENCE_S
from openmsmq.model.peers import PeerPolicy, PeerRule
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.tables import read_table

_FINGERPRINT: Final = re.compile(r"[0-9a-f]{64}")
_SILENCE_MAX_S: Final = 10 * 365 * 86_400


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    strict: bool = False
    silence_s: Annotated[int, msgspec.Meta(ge=1, le=_SILENCE_MAX_S)] = PEER_SILENCE_S


class _Rule(msgspec.Struct, forbid_unknown_fields=True):
    identifiers: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    certificate_names: tuple[str, ...] = ()
    tls: bool = False
    routes: bool = False
    refuse: bool = False


def read_peers(table: Any, file: str) -> PeerPolicy:
    """Read the table of a file."""
    rules = {name: value for name, value in table.items() if isinstance(value, dict)}
    others = {name: value for name, value in table.items() if name not in rules}
    settings = read_table(others, _Settings, file, "peers")
    return PeerPolicy(
        rules=tuple(_rule(name, value, file) for name, value in rules.items()),
        strict=settings.strict,
        silence_s=settings.silence_s,
    )


def _rule(name: str, table: dict[str, Any], file: str) -> PeerRule:
    where = f"{file}: [peers.{name}]"
    listed = {
        key: [value] if isinstance(value, str) else value
        for key, value in table.items()
        if key not in ("tls", "routes", "refuse")
    }
    found = read_table({**table, **listed}, _Rule, file, "peers", name)
    rule = PeerRule(
        name=name,
        identifiers=tuple(_identifier(text, where, name) for text in found.identifiers),
        addresses=tuple(_network(text, where, name) for text in found.addresses),
        certificates=tuple(_fingerprint(text, where, name) for text in found.certificates),
        certificate_names=found.certificate_names,
        tls=found.tls,
        routes=found.routes,
        refuse=found.refuse,
    )
    problem = _problem(rule)
    if problem:
        raise ConfigError(f"{where} {problem}", "peers", name)
    return rule


def _problem(rule: PeerRule) -> str:
    """Return what is wrong with a rule as a whole."""
    by_certificate = bool(rule.certificates or rule.certificate_names)
    # Over TLS the directory of certificates may say who it is.
    is_proven = by_certificate or rule.tls
    if not (rule.identifiers or rule.addresses or is_proven):
        return "names nobody: give identifiers, addresses or certificates"
    if rule.refuse:
        if is_proven or rule.routes:
            return "refuses by identifiers and addresses only; leave the other keys out"
        return ""
    if rule.routes and not (rule.addresses or is_proven):
        return "lets it bring messages of others: say by addresses or certificates who it is"
    return ""


def _identifier(text: str, where: str, name: str) -> Guid:
    try:
        return Guid.parse(text)
    except ValueError as error:
        raise ConfigError(
            f"{where} identifiers is wrong: {error}", "peers", name, "identifiers"
        ) from None


def _network(text: str, where: str, name: str) -> str:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise ConfigError(
            f"{where} addresses is wrong: {text!r} is no IP address and no network such as "
            "10.1.0.0/16",
            "peers",
            name,
            "addresses",
        ) from None
    return text


def _fingerprint(text: str, where: str, name: str) -> str:
    digits = text.replace(":", "").lower()
    if _FINGERPRINT.fullmatch(digits) is None:
        raise ConfigError(
            f"{where} certificates is wrong: {text!r} is no SHA-256 fingerprint of 64 "
            "hexadecimal digits",
            "peers",
            name,
            "certificates",
        )
    return digits
