"""A network of its own for a bench: computers in network namespaces, joined by a bridge in another.

Nothing outside of them is touched, and they are gone when the bench is over.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

INTERFACE: Final = "lan"
_CLONE_NEWNET: Final = 0x40000000
_PLACES: Final = Path("/var/run/netns")


def missing() -> str | None:
    """What keeps a bench from having one, if anything."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if shutil.which("ip") is None:
        return "the program ip (package iproute2) makes network namespaces, and is not here"
    try:
        with network(1):
            return None
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not permitted here: {error.stderr.strip()}"


def address_of(number: int) -> str:
    """Return the address of a computer, the first of which is 0."""
    return f"10.97.7.{number + 1}"


@contextlib.contextmanager
def network(count: int) -> Iterator[list[str]]:
    """Have so many computers on one network for a while; gives the names of their namespaces."""
    prefix = f"omqbench{os.getpid()}"
    switch = f"{prefix}sw"
    hosts = [f"{prefix}h{number}" for number in range(count)]
    with contextlib.ExitStack() as made:
        for name in (switch, *hosts):
            _ip("netns", "add", name)
            made.callback(_ip, "netns", "del", name)
        _ip("-n", switch, "link", "add", INTERFACE, "type", "bridge", "mcast_snooping", "0")
        _ip("-n", switch, "link", "set", INTERFACE, "up")
        for number, name in enumerate(hosts):
            port = f"p{number}"
            veth = ("link", "add", INTERFACE, "netns", name, "type", "veth")
            _ip(*veth, "peer", "name", port, "netns", switch)
            _ip("-n", switch, "link", "set", port, "master", INTERFACE, "up")
            _ip("-n", name, "addr", "add", f"{address_of(number)}/24", "dev", INTERFACE)
            _ip("-n", name, "link", "set", INTERFACE, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield hosts


def enter(name: str) -> None:
    """Be on one of the computers from now on, with this thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    with (_PLACES / name).open("rb") as place:
        if libc.setns(place.fileno(), _CLONE_NEWNET) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), name)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
