"""Transactional messages over HTTPS, through nginx, while both queue managers are killed.

They come in by the door for programs, each under a key: so what is sent is known although answers
are lost, and keys are put to the test, too.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import openmsmq
from tests.runtime.computers import environment
from tests.runtime.http_peer import free_port, make_token
from tests.runtime.proxy import is_open, proxy, why_not
from tests.runtime.raw_client import wait_until
from tests.runtime.session_certificates import Identity

KILLS = int(os.environ.get("OPENMSMQ_HTTP_KILLS", "3"))
MESSAGES = int(os.environ.get("OPENMSMQ_HTTP_MESSAGES", str(50 * KILLS)))
SEED = int(os.environ.get("OPENMSMQ_SEED", "1"))
LEDGER = r"private$\ledger"
ADDRESSES = {"ALPHA": "127.52.1.1", "BETA": "127.52.1.2"}

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


class Process:
    """A queue manager that is killed and started again."""

    def __init__(self, name: str, folder: Path, authority: Identity) -> None:
        self.data = folder / name.lower()
        self.data.mkdir(mode=0o700)
        self.address = ADDRESSES[name]
        self.port, self.outer_port, self.api_port = free_port(), free_port(), free_port()
        self.certificate = self.data / "outer.pem"
        Identity(self.address, authority).save(self.certificate)
        (self.data / "ca.pem").write_text(authority.pem)
        self.file = self.data / "openmsmq.toml"
        self.file.write_text(
            f"""
            name = "{name}"
            data = "{self.data}"
            address = "{self.address}"
            api_port = {self.api_port}
            allow_remote_without_token = true
            [parameters]
            SeqResend13Time = 1
            SeqResend46Time = 1
            SeqResend79Time = 1
            SeqResend10Time = 1
            TryConnectInterval = 200
            [http]
            enabled = true
            address = "127.0.0.1"
            port = {self.port}
            queues = ['private$\\*']
            sends = true
            send_authorities = "ca.pem"
            url = "https://{self.address}:{self.outer_port}"
            """
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "openmsmq.cli.app", "serve", "--config", str(self.file)]
        with (self.data / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=log, env=environment()
            )

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[None]:
        self.start()
        behind = f"127.0.0.1:{self.port}"
        outer = folder / f"nginx-{self.address}"
        try:
            with proxy(outer, self.address, self.outer_port, behind, str(self.certificate)):
                wait_until(lambda: is_open(self.address, self.api_port), 60)
                yield
        finally:
            self.kill()

    def url(self, queue: str) -> str:
        """The name by which others send to a queue: through the proxy."""
        path = queue.replace("\\", "/")
        return f"DIRECT=HTTPS://{self.address}:{self.outer_port}/msmq/{path}"

    def connect(self) -> openmsmq.QueueManager:
        return openmsmq.connect(f"{self.address}:{self.api_port}", start_wait_s=30)


def send_all(source: Process, path: str, token: str, context: ssl.SSLContext) -> None:
    """Send numbers through nginx, each under a key, until each is answered with 201."""
    number = 0
    connection: http.client.HTTPSConnection | None = None
    while number < MESSAGES:
        try:
            if connection is None:
                connection = http.client.HTTPSConnection(
                    source.address, source.outer_port, timeout=20, context=context
                )
            headers = {
                "Authorization": f"Bearer {token}",
                "Content-Type": "text/plain",
                "Msmq-Transactional": "true",
                "Idempotency-Key": f"number-{number}",
            }
            connection.request("POST", path, f"{number}", headers)
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status in (201, 502, 503, 504), (answer.status, said)
            number += answer.status == 201
        except (OSError, http.client.HTTPException):
            if connection is not None:
                connection.close()
            connection = None
    if connection is not None:
        connection.close()


def test_kills_of_either_side_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    authority = Identity("Authority", is_authority=True)
    alpha, beta = (Process(name, tmp_path, authority) for name in ADDRESSES)
    token = make_token(alpha.data)
    context = ssl.create_default_context(cafile=str(alpha.data / "ca.pem"))
    path = f"/queues/{quote(beta.url(LEDGER), safe='')}/messages"
    with alpha.running(tmp_path), beta.running(tmp_path):
        with beta.connect() as there:
            there.create_queue(LEDGER, transactional=True)
        arguments = (alpha, path, token, context)
        sender = threading.Thread(target=send_all, args=arguments, daemon=True)
        sender.start()
        for kill in range(KILLS):
            goal = MESSAGES * kill // (KILLS + 1)
            wait_until(lambda goal=goal: count(beta) >= goal, 120)
            victim = chance.choice((alpha, beta))
            victim.kill()
            victim.start()
        sender.join()
        wait_until(lambda: count(beta) >= MESSAGES, 120)
        with beta.connect() as there:
            queue = there.queue(LEDGER)
            found = [queue.receive(timeout=10).body for _ in range(queue.count())]
        assert found == [f"{number}" for number in range(MESSAGES)]
    print(f"{MESSAGES} messages in order after {KILLS} kills; none lost, none doubled")


def count(process: Process) -> int:
    """How many messages have arrived; asked now and then, for it costs both of them time."""
    time.sleep(0.1)
    try:
        with process.connect() as there:
            return there.queue(LEDGER).count()
    except (OSError, openmsmq.MsmqError):
        return 0
