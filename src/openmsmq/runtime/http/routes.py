"""Which request is whose: by its host and path, before its body is read."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import Final, Protocol, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from openmsmq.runtime.http.answers import Answer, problem
from openmsmq.runtime.http.heads import Head, Request
from openmsmq.runtime.limits import (
    HTTP_BODY_MAX_BYTES,
    HTTP_KNOWN_PLACE_MAX_CHARACTERS,
    HTTP_KNOWN_PLACES_MAX_COUNT,
    HTTP_PROXIES_MAX_COUNT,
)

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_AS_IT_IS: Final = "identity"
_ADDRESS_MAX_CHARACTERS: Final = 64
_WITH_PORT: Final = re.compile(r"\[([^\]]+)\](?::[0-9]{1,5})?|([0-9.]+):[0-9]{1,5}")
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~$-]+)(?::[0-9]{0,5})?")
"""A host, perhaps with a port. Names of computers of Windows may have `$` and `_`."""
_LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "::1")


class Visitor(msgspec.Struct, frozen=True):
    """Who is at the other end of a connection, as far as the connection tells."""

    peer: str
    """Address and port, for the log."""
    address: str
    is_secure: bool = False
    certificate: bytes = b""
    """What it has proved to have, in DER."""


class Proxies:
    """The reverse proxies whose word about their clients is believed.

    Every proxy puts the address that a request came from behind those that it was told of. So the
    last one that is no trusted proxy's own is the client: whatever stands before it, the client has
    written himself.
    """

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks: Final = tuple(map(ipaddress.ip_network, networks))

    def client(self, head: Head, visitor: Visitor) -> Visitor:
        """Return who has made a request, which a visitor has brought."""
        told = head.headers.get("x-forwarded-for")
        if told is None or not self._has(_address_in(visitor.address)):
            return visitor
        address = visitor.address
        for text in reversed(told.rsplit(",", HTTP_PROXIES_MAX_COUNT)[-HTTP_PROXIES_MAX_COUNT:]):
            found = _address_in(text.strip())
            if found is None:
                # What a trusted proxy has not understood counts as its own.
                break
            address = str(found)
            if not self._has(found):
                break
        if address == visitor.address:
            return visitor
        return msgspec.structs.replace(
            visitor, address=address, peer=f"{address} through {visitor.peer}"
        )

    def _has(self, address: _Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)


def _address_in(text: str) -> _Address | None:
    """Read an address as proxies write it, some of them with a port; None if it is none."""
    if len(text) > _ADDRESS_MAX_CHARACTERS or "%" in text:
        return None
    with_port = _WITH_PORT.fullmatch(text)
    if with_port is not None:
        text = with_port[1] or with_port[2]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


class Place(msgspec.Struct, frozen=True):
    """What a request is for."""

    host: str
    """In lower case, with a port if it was named."""
    path: str
    """Without the query; what was written with `%` is as it is meant."""
    raw_path: str
    """As it was written."""


Give = Callable[[Answer], None]
"""Answers a request, once; who is gone gets no answer."""


class Route(Protocol):
    """Somebody who takes requests."""

    def covers(self, place: Place) -> bool:
        """Whether the path is one of its own."""

    def judge(self, head: Head, place: Place, visitor: Visitor) -> Answer | None:
        """Return the answer of a request that is not taken; None if it is."""

    def take(
        self, request: Request, place: Place, visitor: Visitor, give: Give
    ) -> Callable[[], None]:
        """Take a request, and return what is to be called if nobody waits for its answer."""


class Routes:
    """All of them, and the hosts that are this computer."""

    def __init__(self, hosts: Iterable[str], routes: Iterable[Route]) -> None:
        self._hosts: Final = frozenset(
            host.strip("[]").lower() for host in (*hosts, *_LOOPBACK_HOSTS)
        )
        self._routes: Final = tuple(routes)

    def find(self, head: Head) -> tuple[Place, Route] | Answer:
        """Return whose a request is, or what it is answered."""
        place = place_of(head)
        if place is None:
            return problem(HTTPStatus.BAD_REQUEST, "the host or the path of the URL cannot be read")
        if host_name(place.host) not in self._hosts:
            return problem(
                HTTPStatus.BAD_REQUEST,
                f"{place.host!r} is not this computer: its administrator names other hosts in "
                "[http] hosts",
            )
        for route in self._routes:
            if route.covers(place):
                return place, route
        return problem(HTTPStatus.NOT_FOUND, "there is nothing at this URL")


def place_of(head: Head) -> Place | None:
    """Read host and path; None if they cannot be understood.

    A host is read as strictly as can be: a proxy in front may have read another one in it.
    """
    host, target = head.headers.get("host", ""), head.target
    if len(host) + len(target) <= HTTP_KNOWN_PLACE_MAX_CHARACTERS:
        return _known_place(host, target)
    return _read_place(host, target)


def _read_place(host: str, target: str) -> Place | None:
    if not target.startswith("/"):
        # To a proxy, the whole URL is given, and its host counts.
        try:
            parts = urlsplit(target)
        except ValueError:
            return None
        if parts.scheme not in ("http", "https"):
            return None
        if "#" in target:
            return None
        host = parts.netloc
        target = parts.path or "/"
    if _HOST.fullmatch(host) is None:
        return None
    raw_path = target.partition("?")[0]
    try:
        path = unquote(raw_path, errors="strict")
    except UnicodeDecodeError:
        return None
    return Place(host.lower(), path, raw_path) if path.isprintable() else None


_known_place: Final = lru_cache(maxsize=HTTP_KNOWN_PLACES_MAX_COUNT)(_read_place)


def host_name(host: str) -> str:
    """Return a host without its port and without the brackets of IPv6."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def body_problem(head: Head) -> Answer | None:
    """Return what a request with a body is answered if that cannot be taken."""
    if head.length is None:
        return problem(HTTPStatus.LENGTH_REQUIRED, "say with Content-Length how long the body is")
    coding = head.headers.get("content-encoding", _AS_IT_IS)
    if coding.strip().lower() != _AS_IT_IS:
        return problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Encoding: {coding[:20]} is not read here: send the body as it is",
        )
    if head.length > HTTP_BODY_MAX_BYTES:
        return problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"a body of {head.length} bytes; at most {HTTP_BODY_MAX_BYTES}",
        )
    return None


def method_problem(head: Head, *methods: str) -> Answer | None:
    """Return what a request is answered if its method is none of these."""
    if head.method in methods:
        return None
    allowed = ", ".join(methods)
    return problem(
        HTTPStatus.METHOD_NOT_ALLOWED,
        f"{head.method[:20]} is not for this URL: use {allowed}",
        "",
        ("Allow", allowed),
    )
