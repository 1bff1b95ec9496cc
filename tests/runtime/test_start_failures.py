"""What keeps a queue manager from starting is a sentence on the command line, and no traceback."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from pathlib import Path

import pytest

from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.process import exit_code_for
from openmsmq.runtime.service import Server
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreDamaged
from tests.runtime.other_users import GROUP, USER, missing, run_as


async def _once(data: Path) -> None:
    """Start a queue manager, and stop it."""
    config = ServerConfig(
        data=str(data), name="ALPHA", api_tcp=False, transfer=False, directory_server=True
    )
    server = await Server.start(config, log=EventLog("text", "error"))
    server.stop()
    await server.finished()


@pytest.mark.spec("MQDMPR-3.1.3-16")
@pytest.mark.parametrize("kind", [b"M", b"G", b"P"])
@pytest.mark.parametrize("value", [b"", b"\x80", b"\xc1 no record"])
def test_a_record_that_nobody_understands_is_said(tmp_path: Path, kind: bytes, value: bytes):
    asyncio.run(_once(tmp_path))
    store = open_store(tmp_path / "store")
    ((key, _),) = store.scan(kind, kind + b"\xff", 1)
    store.commit(Batch([(key, value)]))
    store.close()
    with pytest.raises(StoreDamaged, match=r"does not understand .*restore it from a") as failure:
        asyncio.run(_once(tmp_path))
    assert exit_code_for(failure.value) == 2


def test_a_socket_that_was_left_and_cannot_be_removed_is_said():
    if reason := missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory() as name:
        data = Path(name)
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(data / "api.sock"))
        (data / "store").mkdir()
        (data / "keys").mkdir()
        for path in (data / "store", data / "keys"):
            os.chown(path, USER, GROUP)
        data.chmod(0o755)
        ran = run_as(USER, GROUP, "serve", "--data", name, "--no-api-tcp", "--no-transfer")
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    assert f"cannot make the Unix socket {name}/api.sock (permission denied)" in ran.stderr
