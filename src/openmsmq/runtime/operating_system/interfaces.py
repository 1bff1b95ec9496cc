"""Which IPv4 networks this computer is on, as Linux tells without any further package.

Elsewhere none are found, and a network must be named.
"""

from __future__ import annotations

import array
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from openmsmq.model.peers import address_of
from openmsmq.protocol.discovery.client import Network

EVERYBODY: Final = "255.255.255.255"
"""The broadcast that no router passes on, where a network has no other."""

INTERFACES_MAX_COUNT: Final = 1_024
"""Addresses of this computer that are looked at."""

_LIST: Final = 0x8912  # SIOCGIFCONF
_FLAGS: Final = 0x8913  # SIOCGIFFLAGS
_BROADCAST: Final = 0x8919  # SIOCGIFBRDADDR
_NETMASK: Final = 0x891B  # SIOCGIFNETMASK

_IS_UP: Final = 0x1
_IS_LOOPBACK: Final = 0x8
_IS_POINT_TO_POINT: Final = 0x10

# struct ifreq: a name and a union whose largest member is struct ifmap.
_NAME_BYTES: Final = 16
_REQUEST_BYTES: Final = _NAME_BYTES + struct.calcsize("LLHBBB0L")
_ADDRESS_OFFSET: Final = _NAME_BYTES + 4
_NOT_GIVEN: Final = "0.0.0.0"
_BROADCAST_MAX_BITS: Final = 30
"""In a longer prefix no address is left for everybody."""


class _Interface(msgspec.Struct, frozen=True):
    place: ipaddress.IPv4Interface
    broadcast: str
    is_loopback: bool
    is_point_to_point: bool

    def network(self, address: str) -> Network:
        return Network(address, self.broadcast, self.is_point_to_point)


def local_networks(addresses: Iterable[str] = ()) -> tuple[Network, ...]:
    """Return the networks of this computer, or those that its `addresses` are on.

    Loopback counts only where there is nothing else, or where an address is on it. An address
    that means all of them is as none.
    """
    wanted = [found for text in addresses if (found := _ipv4(text)) is not None]
    interfaces = list(_interfaces())
    if wanted and not any(address.is_unspecified for address in wanted):
        networks = [
            interface.network(str(address))
            for address in wanted
            for interface in interfaces
            if address == interface.place.ip
            or (interface.is_loopback and address in interface.place.network)
        ]
    else:
        beyond = [interface for interface in interfaces if not interface.is_loopback]
        networks = [one.network(str(one.place.ip)) for one in beyond or interfaces]
    # One question reaches everybody, however many addresses we have there.
    return tuple({_way(network): network for network in reversed(networks)}.values())[::-1]


def prefix_of(address: str) -> ipaddress.IPv4Network | None:
    """Return the addresses of the network that an address of ours is on; None for a line to one."""
    own = ipaddress.IPv4Address(address)
    for interface in _interfaces():
        network = interface.place.network
        if interface.place.ip == own and network.prefixlen <= _BROADCAST_MAX_BITS:
            return network
    return None


def network_of(text: str) -> Network:
    """Read a network as `ADDRESS/BITS`, with our own address there; or raise `ValueError`."""
    try:
        place = ipaddress.IPv4Interface(text)
    except ValueError:
        place = None
    if place is None or "/" not in text:
        raise ValueError(f"{text!r} is not ADDRESS/BITS, such as 192.168.1.7/24")
    return Network(str(place.ip), _computed_broadcast(place))


def _way(network: Network) -> tuple[str, str]:
    """What tells networks apart: everybody, or with no such address our own one."""
    if network.broadcast == EVERYBODY:
        return network.broadcast, network.address
    return network.broadcast, ""


def _ipv4(text: str) -> ipaddress.IPv4Address | None:
    found = address_of(text)
    if isinstance(found, ipaddress.IPv6Address):
        return ipaddress.IPv4Address(0) if found.is_unspecified else None
    return found


def _computed_broadcast(place: ipaddress.IPv4Interface) -> str:
    if place.network.prefixlen > _BROADCAST_MAX_BITS:
        return EVERYBODY
    return str(place.network.broadcast_address)


def _interfaces() -> Iterator[_Interface]:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            for entry in _entries(probe):
                found = _describe(probe, entry)
                if found is not None:
                    yield found
    except OSError:
        return


def _entries(probe: socket.socket) -> Iterator[bytes]:
    """Yield the name and address of each interface as the system has them."""
    room = array.array("B", bytes(INTERFACES_MAX_COUNT * _REQUEST_BYTES))
    start, size = room.buffer_info()
    answer = fcntl.ioctl(probe, _LIST, struct.pack("iP", size, start))
    filled = struct.unpack("iP", answer)[0]
    data = room.tobytes()
    for at in range(0, filled, _REQUEST_BYTES):
        yield data[at : at + _REQUEST_BYTES]


def _describe(probe: socket.socket, entry: bytes) -> _Interface | None:
    try:
        (flags,) = struct.unpack_from("H", fcntl.ioctl(probe, _FLAGS, entry), _NAME_BYTES)
        # The entry has its address, so these are about it and not about the first of the name.
        netmask = _address_in(fcntl.ioctl(probe, _NETMASK, entry))
        given = _address_in(fcntl.ioctl(probe, _BROADCAST, entry))
    except OSError:
        # It has gone meanwhile.
        return None
    if not flags & _IS_UP:
        return None
    place = ipaddress.IPv4Interface(f"{_address_in(entry)}/{netmask}")
    return _Interface(
        place,
        _computed_broadcast(place) if given == _NOT_GIVEN else given,
        bool(flags & _IS_LOOPBACK),
        bool(flags & _IS_POINT_TO_POINT),
    )


def _address_in(request: bytes) -> str:
    return socket.inet_ntoa(request[_ADDRESS_OFFSET : _ADDRESS_OFFSET + 4])
