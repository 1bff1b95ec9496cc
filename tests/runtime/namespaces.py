"""Networks of their own for tests: hosts in network namespaces, joined by bridges.

Nothing outside the namespaces is touched, and they are gone when the test is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import itertools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

WITHIN_S = 90.0
_CLONE_NEWNET = 0x40000000
_NUMBERS = itertools.count(1)
_T = TypeVar("_T")


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@functools.cache
def missing() -> str:
    """Why there can be no namespaces here; nothing when there can."""
    if not sys.platform.startswith("linux"):
        return "network namespaces are a thing of Linux"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if shutil.which("ip") is None:
        return "the program ip (package iproute2) makes network namespaces, and is not here"
    try:
        with laboratory("lan") as lab:
            lab.host("probe", lan="10.97.0.1")
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not permitted here: {error.stderr.strip()}"
    return ""


class Host:
    """A computer: a namespace, and a thread inside it that runs an event loop."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def ip(self, *arguments: str) -> None:
        """Change something about its network."""
        ip("-n", self.name, *arguments)

    def command(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program there."""
        line = ["ip", "netns", "exec", self.name, *words]
        return subprocess.run(
            line, check=False, capture_output=True, text=True, timeout=WITHIN_S, **options
        )

    def run(self, function: Callable[[], Coroutine[Any, Any, _T] | Awaitable[_T]]) -> _T:
        """Run a coroutine there, and wait for what it gives."""

        async def call() -> _T:
            return await function()

        if self._loop is None:
            self._begin()
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(WITHIN_S)

    def do(self, function: Callable[[], _T]) -> _T:
        """Call a function there, within the event loop."""

        async def call() -> _T:
            return function()

        return self.run(call)

    def _begin(self) -> None:
        ready = threading.Event()

        def live() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with Path("/var/run/netns", self.name).open("rb") as place:
                # It holds for this thread alone.
                assert libc.setns(place.fileno(), _CLONE_NEWNET) == 0, ctypes.get_errno()
            self._loop = asyncio.new_event_loop()
            ready.set()
            self._loop.run_forever()
            self._loop.close()

        self._thread = threading.Thread(target=live, daemon=True)
        self._thread.start()
        assert ready.wait(WITHIN_S)

    def end(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(WITHIN_S)
        ip("netns", "del", self.name)


class Laboratory:
    """Bridges, and hosts that are plugged into them."""

    def __init__(self, *bridges: str) -> None:
        self.prefix = f"omq{os.getpid()}x{next(_NUMBERS)}"
        self._switch = f"{self.prefix}sw"
        self._bridges = bridges
        self._hosts: list[Host] = []
        self._ports: dict[tuple[str, str], str] = {}

    def begin(self) -> None:
        ip("netns", "add", self._switch)
        for bridge in self._bridges:
            ip("-n", self._switch, "link", "add", bridge, "type", "bridge")
            ip("-n", self._switch, "link", "set", bridge, "up")

    def host(self, name: str, **addresses: str) -> Host:
        """Add a host with an address on each bridge that is named, in a /24."""
        made = Host(f"{self.prefix}{name}")
        ip("netns", "add", made.name)
        self._hosts.append(made)
        made.ip("link", "set", "lo", "up")
        for bridge, address in addresses.items():
            port = f"p{len(self._ports)}"
            self._ports[name, bridge] = port
            ip(
                *("link", "add", bridge, "netns", made.name, "type", "veth"),
                *("peer", "name", port, "netns", self._switch),
            )
            ip("-n", self._switch, "link", "set", port, "master", bridge, "up")
            made.ip("addr", "add", f"{address}/24", "brd", "+", "dev", bridge)
            made.ip("link", "set", bridge, "up")
        return made

    def cut(self, name: str, bridge: str) -> None:
        """Pull a cable."""
        ip("-n", self._switch, "link", "set", self._ports[name, bridge], "nomaster")

    def mend(self, name: str, bridge: str) -> None:
        """Plug it in again."""
        ip("-n", self._switch, "link", "set", self._ports[name, bridge], "master", bridge)

    def end(self) -> None:
        for made in self._hosts:
            made.end()
        with contextlib.suppress(subprocess.CalledProcessError):
            ip("netns", "del", self._switch)


@contextlib.contextmanager
def laboratory(*bridges: str) -> Iterator[Laboratory]:
    """Have networks for the time of a block."""
    lab = Laboratory(*bridges)
    try:
        lab.begin()
        yield lab
    finally:
        lab.end()


@contextlib.contextmanager
def required_laboratory(*bridges: str) -> Iterator[Laboratory]:
    """Have networks for the time of a block, or skip the test with the reason."""
    if reason := missing():
        pytest.skip(reason)
    with laboratory(*bridges) as lab:
        yield lab
