"""Walk one transactional message through the running code, and print the way.

Two queue managers run in this process, each on a thread with its disk, its sockets and its loop.
An application sends one message in a transaction; another one receives it from the other queue
manager in a transaction. Everything of ours that is called meanwhile is written down, from the
first call of the sender until nothing is left to be told on either side.

What is counted is the way of the message, and not what happens beside it. A message before it has
opened the session, and both applications have their queues open. Left out are the clock (asking
everybody when to be woken, and rounds in which nothing is due; an acknowledgment that the clock
brings is counted), comprehensions and functions without a name, which are lines of the function
they stand in, and special methods, such as comparisons.

A shape is a form in which the message exists on its way: a class that holds it, a tuple of which
it is a part, or bytes in which its body stands at a certain distance from the end.
"""

from __future__ import annotations

import argparse
import re
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import openmsmq
from tests.server_thread import ServerThread, start_server

SOURCE: Final = Path(openmsmq.__file__).parent
BODY: Final = b"one message on its way"
ALPHA, BETA = "127.0.9.2", "127.0.9.3"
QUEUE = r"private$\walk"
PATIENCE_S: Final = 20.0
QUIET_S: Final = 1.0
_CLOCK: Final = re.compile(
    r".*\.(_?next_\w*ms|_arm_timer|_due_s|end_timeouts|schedule\w*)|earliest"
    r"|(Housekeeping|OutgoingSweep)\.run"
    r"|(Unrouted|NameLookups|DirectoryRequests|DirectoryService|OwnKeys|Links|History"
    r"|IncomingSequences)\.wake"
)
"""Who asks when something is due, or finds that nothing is."""
_DEPTH: Final = 2
"""How deep a value is looked into for the message."""


class Walk:
    """What was called, by whom, and in which shapes the message was seen."""

    def __init__(self) -> None:
        self.functions: dict[CodeType, str] = {}
        self.order: dict[str, list[str]] = {}
        """Functions by the file they stand in, both as they were first called."""
        self.calls = 0
        self.between: Counter[tuple[str, str]] = Counter()
        self.shapes: dict[str, str] = {}
        self.is_under_way = False
        self._files: dict[str, str] = {}
        self._clock = threading.local()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if not self.is_under_way or event not in ("call", "return"):
            return
        code = frame.f_code
        file = self._file(code.co_filename)
        if not file or self._is_of_the_clock(frame, event) or event == "return":
            return
        if code.co_name.startswith("<") or re.fullmatch("__(?!init|bool|len)\\w+__", code.co_name):
            return
        self.calls += 1
        if code not in self.functions:
            self.functions[code] = code.co_qualname
            self.order.setdefault(file, []).append(code.co_qualname)
        caller = frame.f_back
        while caller is not None and caller.f_code.co_name.startswith("<"):
            caller = caller.f_back
        origin = self._file(caller.f_code.co_filename) if caller is not None else ""
        if origin and origin != file:
            self.between[origin, file] += 1
        for name in code.co_varnames[: code.co_argcount]:
            shape = _shape(frame.f_locals.get(name), _DEPTH)
            if shape:
                self.shapes.setdefault(shape, f"{file}: {code.co_qualname}")

    def _is_of_the_clock(self, frame: FrameType, event: str) -> bool:
        """Whether a call stands beneath one of the clock's, on its thread."""
        top: FrameType | None = getattr(self._clock, "top", None)
        if top is not None:
            if event == "return" and frame is top:
                self._clock.top = None
            return True
        if event == "call" and _CLOCK.fullmatch(frame.f_code.co_qualname):
            self._clock.top = frame
            return True
        return False

    def _file(self, path: str) -> str:
        found = self._files.get(path)
        if found is None:
            inside = path.startswith(f"{SOURCE}/")
            found = self._files[path] = path.removeprefix(f"{SOURCE}/") if inside else ""
        return found

    def inside_manager(self) -> list[tuple[tuple[str, str], int]]:
        """Count the calls from one module of the manager to another, most first."""
        return [
            (pair, count)
            for pair, count in self.between.most_common()
            if all(file.startswith("manager/") for file in pair)
        ]


def _shape(value: Any, depth: int) -> str:
    """Name the form in which a value holds the message; empty if it does not."""
    if isinstance(value, bytes | bytearray):
        at = value.find(BODY)
        return f"bytes with {len(value) - at - len(BODY)} behind the body" if at >= 0 else ""
    if depth == 0 or value is None or isinstance(value, str | int):
        return ""
    if isinstance(value, tuple | list):
        inner = [_shape(part, depth - 1) for part in value[:20]]
        return f"{type(value).__name__} of {next(filter(None, inner))}" if any(inner) else ""
    kind = type(value)
    fields = getattr(kind, "__struct_fields__", None) or getattr(kind, "__slots__", ())
    if not kind.__module__.startswith("openmsmq."):
        return ""
    parts = [getattr(value, field, None) for field in fields]
    return kind.__qualname__ if any(_shape(part, depth - 1) for part in parts) else ""


def _free_port() -> int:
    with socket.socket() as one, socket.socket() as two:
        one.bind((ALPHA, 0))
        two.bind((BETA, one.getsockname()[1]))
        return int(one.getsockname()[1])


def _start(name: str, address: str, directory: str, port: int) -> ServerThread:
    return start_server(
        f"{directory}/{name}",
        name=name,
        address=address,
        transfer=True,
        session_port=port,
    )


def walk() -> Walk:
    """Send one message from ALPHA to BETA, and receive it there."""
    found = Walk()
    port = _free_port()
    with tempfile.TemporaryDirectory() as directory:
        threading.setprofile(found)
        servers = (
            _start("ALPHA", ALPHA, directory, port),
            _start("BETA", BETA, directory, port),
        )
        with (
            servers[0] as alpha,
            servers[1] as beta,
            openmsmq.connect(f"{alpha.host}:{alpha.port}") as sender,
            openmsmq.connect(f"{beta.host}:{beta.port}") as receiver,
        ):
            receiver.create_queue(QUEUE, transactional=True)
            there = sender.queue(f"DIRECT=TCP:{BETA}\\{QUEUE}")
            here = receiver.queue(QUEUE)
            _send_and_receive(sender, there, receiver, here)
            time.sleep(QUIET_S)
            found.is_under_way = True
            sys.setprofile(found)
            _send_and_receive(sender, there, receiver, here)
            sys.setprofile(None)
            _wait_until_quiet(found)
            found.is_under_way = False
            threading.setprofile(None)
    return found


def _send_and_receive(
    sender: openmsmq.QueueManager,
    there: openmsmq.Queue,
    receiver: openmsmq.QueueManager,
    here: openmsmq.Queue,
) -> None:
    with sender.transaction() as work:
        there.send(BODY, transaction=work)
    with receiver.transaction() as work:
        message = here.receive(timeout=PATIENCE_S, transaction=work)
    if message.body != BODY:
        raise ValueError(f"another message came: {message.body!r}")


def _wait_until_quiet(found: Walk) -> None:
    """Wait until nothing was called for a while that was not called before: clocks go on."""
    for _ in range(round(PATIENCE_S / QUIET_S)):
        before = len(found.functions)
        time.sleep(QUIET_S)
        if before == len(found.functions):
            return
    raise TimeoutError("the queue managers never come to rest")


def main() -> None:
    """Print the way: every file with its functions, then the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="list files and functions, too")
    parser.add_argument("--calls", action="store_true", help="list who calls whom in the manager")
    arguments = parser.parse_args()
    found = walk()
    if arguments.files:
        for file, functions in found.order.items():
            print(f"{file}: {', '.join(functions)}")
        print()
        for shape, first in found.shapes.items():
            print(f"{shape} ({first})")
        print()
    inside = found.inside_manager()
    if arguments.calls:
        for (caller, called), count in inside:
            print(f"{count:4} {caller} -> {called}")
        print()
    print(
        f"{len(found.order)} files, {len(found.functions)} functions, {found.calls} calls, "
        f"{sum(count for _, count in inside)} of them between modules of the manager, "
        f"{len(found.shapes)} shapes"
    )


if __name__ == "__main__":
    main()
