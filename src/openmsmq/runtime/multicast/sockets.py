"""Raw sockets of IP protocol 113: one that hears, and one for each way in which packets leave.

Who may open them needs the capability CAP_NET_RAW. A socket hears the groups that it has joined on
its one interface, and what is sent to this computer itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Callable
from typing import Final

from openmsmq.protocol.pgm.outputs import Transmit
from openmsmq.runtime.limits import MULTICAST_BUFFER_BYTES
from openmsmq.runtime.start_errors import os_reason
from openmsmq.wire.pgm.packets import IP_PROTOCOL, PacketType

_ROUTER_ALERT: Final = b"\x94\x04\0\0"
"""The option of IP that has routers look at a packet. [RFC 2113]"""
_ASK_ADDRESS: Final = 0x8915
"""Asks Linux for the address of an interface by its name."""
_NAME_BYTES: Final = 16
_MULTICAST_ALL: Final = 49
_FORCED_BUFFER: Final = 33
_MAX_BYTES: Final = 65_535
_IP_HEADER_BYTES: Final = 20
_ATTACH_FILTER: Final = 26
_DETACH_FILTER: Final = 27
_WITHOUT_DATA: Final = (
    # How long the header of IP is; then the type of the packet behind it: data and repairs go.
    (0xB1, 0, 0, 0),
    (0x50, 0, 0, 4),
    (0x15, 2, 0, PacketType.ODATA),
    (0x15, 1, 0, PacketType.RDATA),
    (0x06, 0, 0, 0xFFFF),
    (0x06, 0, 0, 0),
)
"""Has the kernel keep the data of others, and our own, from one who listens to no group."""
_ANY_GROUP: Final = "239.255.255.255"


class NoMulticast(Exception):
    """There can be no multicast here; the sentence says why and what to do."""


def interface_address(interface: str) -> str:
    """Return the address of an interface, which is named or has this address already.

    Without a name it is the one by which this computer sends to groups.
    """
    with contextlib.suppress(ValueError):
        return str(ipaddress.IPv4Address(interface))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        if not interface:
            try:
                # Nothing is sent by this.
                asking.connect((_ANY_GROUP, 1))
            except OSError as error:
                raise NoMulticast(
                    f"no interface leads to multicast addresses ({os_reason(error)}): name one "
                    "as interface in [multicast]"
                ) from None
            return str(asking.getsockname()[0])
        name = interface.encode()[: _NAME_BYTES - 1].ljust(_NAME_BYTES, b"\0")
        try:
            found = fcntl.ioctl(asking, _ASK_ADDRESS, name.ljust(256, b"\0"))
        except OSError as error:
            raise NoMulticast(
                f"the interface {interface} has no IPv4 address ({os_reason(error)}): give "
                "interface in [multicast] the name or the address of one that has"
            ) from None
        return socket.inet_ntoa(found[20:24])


class PgmSockets:
    """The sockets on one interface."""

    def __init__(self, interface: str, hops: int) -> None:
        self.address = interface_address(interface)
        """Our own address there."""
        self._groups: set[str] = set()
        with contextlib.ExitStack() as opened:
            self._hearing = self._open(opened, _hearing)
            self._plain = self._open(opened, lambda: _sending(self.address, hops, alert=False))
            self._alert = self._open(opened, lambda: _sending(self.address, hops, alert=True))
            self._near = self._open(opened, lambda: _sending(self.address, 1, alert=True))
            self._hears_data = True
            self.hear_data(wanted=False)
            opened.pop_all()

    def _open(
        self, opened: contextlib.ExitStack, make: Callable[[], socket.socket]
    ) -> socket.socket:
        try:
            made = make()
        except PermissionError:
            raise NoMulticast(
                "multicast needs the capability CAP_NET_RAW: with systemd, add "
                "AmbientCapabilities=CAP_NET_RAW to the service; in a container, --cap-add=NET_RAW"
            ) from None
        except OSError as error:
            raise NoMulticast(
                f"cannot open sockets for multicast on {self.address} ({os_reason(error)}): give "
                "interface in [multicast] an interface that is up and has an IPv4 address"
            ) from None
        opened.callback(made.close)
        return made

    def fileno(self) -> int:
        """Return the socket that hears, for whoever waits for it."""
        return self._hearing.fileno()

    def hear_data(self, *, wanted: bool) -> None:
        """Say whether somebody listens, or only asks a source of ours for repairs.

        Without a filter of the kernel more is read, and dropped here.
        """
        if wanted == self._hears_data:
            return
        self._hears_data = wanted
        with contextlib.suppress(OSError):
            if wanted:
                self._hearing.setsockopt(socket.SOL_SOCKET, _DETACH_FILTER, 0)
            else:
                steps = b"".join(struct.pack("HBBI", *step) for step in _WITHOUT_DATA)
                # The kernel copies the program while it is told of it.
                kept = ctypes.create_string_buffer(steps, len(steps))
                program = struct.pack("HP", len(_WITHOUT_DATA), ctypes.addressof(kept))
                self._hearing.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)

    def join(self, group: str) -> None:
        """Hear what is sent to a group."""
        if group in self._groups:
            return
        try:
            self._hearing.setsockopt(
                socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, self._membership(group)
            )
        except OSError as error:
            raise NoMulticast(
                f"cannot join the group {group} on {self.address} ({os_reason(error)}): the "
                "system may limit them (net.ipv4.igmp_max_memberships)"
            ) from None
        self._groups.add(group)

    def leave(self, group: str) -> None:
        """Hear it no more."""
        if group in self._groups:
            self._groups.discard(group)
            with contextlib.suppress(OSError):
                self._hearing.setsockopt(
                    socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, self._membership(group)
                )

    def _membership(self, group: str) -> bytes:
        return socket.inet_aton(group) + socket.inet_aton(self.address)

    def send(self, transmit: Transmit) -> None:
        """Send a packet; one that the system does not take is lost."""
        if transmit.hops is not None:
            through = self._near
        else:
            through = self._alert if transmit.for_routers else self._plain
        with contextlib.suppress(OSError):
            through.sendto(transmit.data, (transmit.address, 0))

    def receive(self) -> tuple[bytes, str, str] | None:
        """Return a packet, the address that it came from and the one it went to."""
        while True:
            try:
                data, origin = self._hearing.recvfrom(_MAX_BYTES)
            except BlockingIOError:
                return None
            except OSError as error:
                if error.errno in (errno.EBADF, errno.ENOTSOCK):
                    raise
                return None
            head = (data[0] & 0x0F) * 4 if data else 0
            if head >= _IP_HEADER_BYTES:
                return data[head:], origin[0], socket.inet_ntoa(data[16:20])

    def close(self) -> None:
        """Close them; the system leaves the groups."""
        for each in (self._hearing, self._plain, self._alert, self._near):
            each.close()


def _hearing() -> socket.socket:
    made = _raw()
    made.setsockopt(socket.IPPROTO_IP, _MULTICAST_ALL, 0)
    try:
        made.setsockopt(socket.SOL_SOCKET, _FORCED_BUFFER, MULTICAST_BUFFER_BYTES)
    except OSError:
        # That needs one capability more.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MULTICAST_BUFFER_BYTES)
    return made


def _sending(address: str, hops: int, *, alert: bool) -> socket.socket:
    made = _raw()
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hops)
    # Queues of this computer hear what its own applications send.
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    # It hears nothing: what came would only fill its buffer.
    made.setsockopt(socket.IPPROTO_IP, _MULTICAST_ALL, 0)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
    if alert:
        made.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, _ROUTER_ALERT)
    return made


def _raw() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_RAW, IP_PROTOCOL)
    made.setblocking(False)
    return made
