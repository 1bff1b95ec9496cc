"""Direct format names: a queue, and the way to its computer. [MQMQ 2.1.2]"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, Self, TypeAlias

from openmsmq.model.names.base import BaseFormatName, check_format_name_size
from openmsmq.model.names.errors import IllegalFormatName, UnsupportedName, read_part
from openmsmq.model.names.local import (
    LocalQueueName,
    QueueOnComputer,
    read_queue,
    read_written_queue,
)
from openmsmq.model.names.parts import (
    canonical_ip_address,
    check_computer_name,
    check_ip_address,
    check_port,
    check_url_host,
    fold,
    keyword,
    read_port,
)
from openmsmq.model.names.paths import LOCAL_COMPUTERS, PathName


class DirectProtocol(enum.Enum):
    """How a direct format name says where its computer is. [MQMQ 2.1.2]"""

    OS = "OS"
    TCP = "TCP"
    HTTP = "HTTP"
    HTTPS = "HTTPS"

    @property
    def is_http(self) -> bool:
        """Whether the address is a URL."""
        return self in _DEFAULT_PORTS


_DEFAULT_PORTS: Final = {DirectProtocol.HTTP: 80, DirectProtocol.HTTPS: 443}


class DirectFormatName(BaseFormatName, frozen=True, gc=False):
    r"""A queue and the way to its computer: `DIRECT=OS:host\PRIVATE$\orders`. [MQMQ 2.1.2]

    `host` is a computer name for OS, an IP address for TCP, either of them for HTTP and HTTPS;
    IPv6 addresses stand here without brackets. Only HTTP and HTTPS can have a `port`.
    """

    protocol: DirectProtocol
    host: str
    queue: QueueOnComputer
    port: int | None = None

    def __post_init__(self) -> None:
        if self.protocol.is_http:
            check_url_host(self.host)
            self._check_url_queue()
        elif self.protocol is DirectProtocol.TCP:
            check_ip_address(self.host)
        else:
            check_computer_name(self.host, IllegalFormatName)
        if self.port is not None:
            if not self.protocol.is_http:
                raise IllegalFormatName(str(self.port), 0, "only HTTP and HTTPS have a port")
            check_port(self.port)

    @classmethod
    def from_wire_text(cls, text: str) -> Self:
        """Read the text as packets carry it: without `DIRECT=`, which is accepted though."""
        check_format_name_size(text)
        start = 7 if keyword(text[:7]) == "direct=" else 0
        return cls(*read_part(text, start, len(text), _read_fields))

    @classmethod
    def from_path(cls, path: PathName) -> Self:
        """Name the queue of a path name by its computer. [MC-MQAC 3.1.6.2]"""
        return cls(DirectProtocol.OS, path.computer, path.queue)

    @property
    def wire_text(self) -> str:
        """The text as packets carry it, without `DIRECT=`. [MQMQ 2.2.18.1.5.2]"""
        return self._text(self.host, self.port)

    @property
    def key(self) -> str:
        """What is equal for names of the same queue, whatever their case and spelling."""
        host = self.host
        if self.protocol is not DirectProtocol.OS:
            host = canonical_ip_address(host) or host
        return fold(f"DIRECT={self._text(host, self.port_or_default)}")

    @property
    def is_local(self) -> bool:
        """Whether the name says that the queue is on the local computer."""
        return self.protocol is DirectProtocol.OS and fold(self.host) in LOCAL_COMPUTERS

    @property
    def port_or_default(self) -> int | None:
        """The port given, or the one that HTTP or HTTPS has otherwise. [MQMQ 2.1.2]"""
        return _DEFAULT_PORTS.get(self.protocol) if self.port is None else self.port

    @property
    def is_read_only(self) -> bool:
        """Whether it names a journal or a dead-letter queue, to which nobody can send."""
        return self.queue.is_read_only

    @property
    def openable_for_send(self) -> bool:
        """Whether an application can send to it: not to journals, nor to subqueues."""
        return self.queue.takes_messages

    @property
    def openable_for_receive(self) -> bool:
        """Whether an application can receive, or peek, from it: HTTP only sends."""
        return not self.protocol.is_http

    def __str__(self) -> str:
        return f"DIRECT={self.wire_text}"

    def _text(self, host: str, port: int | None) -> str:
        if not self.protocol.is_http:
            return f"{self.protocol.value}:{host}\\{self.queue.format_text()}"
        authority = f"[{host}]" if ":" in host else host
        if port is not None:
            authority = f"{authority}:{port}"
        return f"{self.protocol.value}://{authority}/MSMQ/{self.queue.format_text('/')}"

    def _check_url_queue(self) -> None:
        if isinstance(self.queue, LocalQueueName):
            for part in (self.queue.name, self.queue.subqueue or ""):
                if "/" in part:
                    problem = "a queue name in a URL cannot contain '/'"
                    raise IllegalFormatName(part, part.index("/"), problem)


def read_direct(text: str) -> DirectFormatName:
    """Read what follows `DIRECT=`, as people and programs write it."""
    return DirectFormatName(*_read_fields(text, _read_written_queue))


_Fields: TypeAlias = tuple[DirectProtocol, str, QueueOnComputer, int | None]

_PROTOCOLS: Final = {protocol.value.lower(): protocol for protocol in DirectProtocol}


def _read_queue(text: str) -> QueueOnComputer:
    return read_queue(text, "\\", IllegalFormatName)


def _read_written_queue(text: str) -> QueueOnComputer:
    return read_written_queue(text, "\\", IllegalFormatName)


def _read_fields(
    text: str, queue_reader: Callable[[str], QueueOnComputer] = _read_queue
) -> _Fields:
    stop = text.find(":")
    word = keyword(text[: max(stop, 0)])
    if word in ("ipx", "spx"):
        raise UnsupportedName(text, 0, f"{word.upper()} is not supported: use TCP or OS")
    protocol = _PROTOCOLS.get(word)
    if protocol is None:
        problem = "after DIRECT= comes OS:, TCP:, HTTP:// or HTTPS:// and the computer"
        raise IllegalFormatName(text, 0, problem)
    if protocol.is_http:
        return _read_url(protocol, text, stop + 1)
    host_start = stop + 1
    separator = text.find("\\", host_start)
    if separator < 0:
        raise IllegalFormatName(text, len(text), r"after the computer comes '\' and the queue")
    read_host = _read_ip_address if protocol is DirectProtocol.TCP else _read_computer
    host = read_part(text, host_start, separator, read_host)
    queue = read_part(text, separator + 1, len(text), queue_reader)
    return protocol, host, queue, None


def _read_url(protocol: DirectProtocol, text: str, start: int) -> _Fields:
    """Read `//host:port/MSMQ/queue`; backslashes may stand after MSMQ, as the grammar has it."""
    if text[start : start + 2] != "//":
        raise IllegalFormatName(text, start, f"after {protocol.value}: comes // and the computer")
    host_start = start + 2
    host_stop = text.find("/", host_start)
    path_stop = host_stop + 5
    if host_stop < 0 or keyword(text[host_stop:path_stop]) != "/msmq":
        position = len(text) if host_stop < 0 else host_stop
        raise IllegalFormatName(text, position, "after the computer comes /MSMQ/ and the queue")
    if text[path_stop : path_stop + 1] not in ("/", "\\"):
        raise IllegalFormatName(text, path_stop, "after /MSMQ comes '/' and the queue")
    host, port = read_part(text, host_start, host_stop, _read_authority)
    queue = read_part(text, path_stop + 1, len(text), _read_url_queue)
    return protocol, host, queue, port


def _read_authority(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host_stop = text.find("]")
        if host_stop < 0:
            raise IllegalFormatName(text, len(text), "']' is missing after the IPv6 address")
        host_start, port_start = 1, host_stop + 1
    else:
        host_stop = port_start = text.find(":") if ":" in text else len(text)
        host_start = 0
    host = text[host_start:host_stop]
    read_part(text, host_start, host_stop, _check_bracketed if host_start else check_url_host)
    if port_start == len(text):
        return host, None
    if text[port_start] != ":":
        raise IllegalFormatName(text, port_start, "after ']' comes ':' and a port, or '/'")
    return host, read_part(text, port_start + 1, len(text), _read_url_port)


def _check_bracketed(text: str) -> None:
    check_url_host(text)
    if ":" not in text:
        raise IllegalFormatName(text, 0, f"{text} is no IPv6 address: leave out the brackets")


def _read_url_port(text: str) -> int | None:
    # The grammar allows a colon with no digits after it, as URLs do.
    return read_port(text) if text else None


def _read_url_queue(text: str) -> QueueOnComputer:
    queue = read_queue(text, "\\/", IllegalFormatName)
    start = 9 if isinstance(queue, LocalQueueName) and queue.private else 0
    position = text.find("/", start)
    if position >= 0:
        raise IllegalFormatName(text, position, "a queue name in a URL cannot contain '/'")
    return queue


def _read_computer(text: str) -> str:
    check_computer_name(text, IllegalFormatName)
    return text


def _read_ip_address(text: str) -> str:
    """Read an IP address. Brackets around IPv6 are accepted and left out. [MQQB 2.2.4]"""
    start, stop = 0, len(text)
    if text.startswith("[") and text.endswith("]") and ":" in text:
        start, stop = 1, stop - 1
    read_part(text, start, stop, check_ip_address)
    return text[start:stop]
