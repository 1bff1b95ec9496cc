"""Two queue managers as processes, with a network between them."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

import openmsmq
from openmsmq.capture.frames import read_frames
from openmsmq.wire.packets import UserMessage, decode
from tests.runtime.scripted_engine import free_port
from tests.runtime.test_server_process import Process, serving
from tests.strategies.captures import said_in

ALPHA, BETA = "127.0.0.21", "127.0.0.22"
QUEUE = "private$\\orders"


@pytest.fixture
def port() -> int:
    return free_port(ALPHA, BETA)


def serve(tmp_path: Path, port: int, address: str, *flags: str) -> AbstractContextManager[Process]:
    file = tmp_path / f"{address}.toml"
    file.write_text(
        f"[parameters]\nMsmqIpPort = {port}\nMsmqIpPingPort = {port}\nTryConnectInterval = 100\n"
        f'[hosts]\nbeta = "{BETA}"\n',
        encoding="utf-8",
    )
    options = ["--transfer", "--address", address, "--config", str(file), *flags]
    return serving(tmp_path / address, *options)


def test_a_message_goes_from_one_to_the_other_and_can_be_read_in_the_capture(tmp_path, port):
    capture = tmp_path / "alpha.pcapng"
    with (
        serve(tmp_path, port, ALPHA, "--capture", str(capture)) as alpha,
        serve(tmp_path, port, BETA) as beta,
    ):
        assert alpha.facts["sessions"] == f"{ALPHA}:{port}"
        with (
            openmsmq.connect(f"{ALPHA}:{alpha.port}") as sender,
            openmsmq.connect(f"{BETA}:{beta.port}") as receiver,
        ):
            receiver.create_queue(QUEUE)
            sender.queue(f"DIRECT=OS:beta\\{QUEUE}").send(b"by name", recoverable=True)
            sender.queue(f"DIRECT=TCP:{BETA}\\{QUEUE}").send(b"by address")
            orders = receiver.queue(QUEUE)
            bodies = {orders.receive(timeout=60).body for _ in range(2)}
        assert bodies == {b"by name", b"by address"}
        assert [server.end(signal.SIGTERM)[0] for server in (alpha, beta)] == [0, 0]
    with capture.open("rb") as opened:
        items = said_in(read_frames(opened.read), port)
    sent = [it for it in items if isinstance(decode(it.data), UserMessage)]
    assert {decode(it.data).properties.body for it in sent} == bodies
    assert {str(it.source).partition(":")[0] for it in sent} == {ALPHA}


def test_a_message_waits_for_a_queue_manager_that_is_away(tmp_path, port):
    with ExitStack() as stack:
        alpha = stack.enter_context(serve(tmp_path, port, ALPHA))
        with serve(tmp_path, port, BETA) as beta, beta.connect() as receiver:
            receiver.create()
            beta.end(signal.SIGTERM)
        with openmsmq.connect(f"{ALPHA}:{alpha.port}") as sender:
            queue = sender.queue(f"DIRECT=TCP:{BETA}\\private$\\orders")
            for number in range(100):
                queue.send(b"%d" % number, recoverable=True)
        alpha.end(signal.SIGKILL)
        alpha = stack.enter_context(serve(tmp_path, port, ALPHA))
        beta = stack.enter_context(serve(tmp_path, port, BETA))
        with openmsmq.connect(f"{BETA}:{beta.port}") as receiver:
            queue = receiver.queue("private$\\orders")
            received = [queue.receive(timeout=60).body for _ in range(100)]
        assert received == [b"%d" % number for number in range(100)]
