from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.service import loop_factory, manager_config, notify_supervisor


@pytest.mark.parametrize(
    ("address", "addresses"),
    [
        ("127.0.0.2", ("127.0.0.2", "alpha.example.org")),
        ("10.0.0.1", ("10.0.0.1", socket.gethostname(), "alpha.example.org")),
        ("0.0.0.0", (socket.gethostname(), "localhost", "127.0.0.1", "::1", "alpha.example.org")),
    ],
)
def test_a_queue_manager_knows_under_which_names_it_is_meant(address, addresses):
    config = manager_config(
        ServerConfig(data="d", name="BETA", address=address, also_known_as=("alpha.example.org",))
    )
    assert config.name == "BETA"
    assert config.addresses == addresses


def test_plain_asyncio_can_be_asked_for():
    loop = loop_factory("asyncio")()
    assert type(loop).__module__.startswith("asyncio.")
    loop.close()


def test_any_installed_loop_serves():
    loop = loop_factory("auto")()
    assert isinstance(loop, asyncio.AbstractEventLoop)
    loop.close()


def test_uvloop_that_is_asked_for_must_be_there():
    try:
        import uvloop  # noqa: F401
    except ImportError:
        with pytest.raises(ConfigError, match=r"openmsmq\[fast\]"):
            loop_factory("uvloop")


def test_systemd_hears_when_the_server_is_ready(tmp_path: Path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        notify_supervisor("READY=1")
        assert supervisor.recv(100) == b"READY=1"


def test_a_supervisor_that_does_not_listen_does_not_matter(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "absent"))
    notify_supervisor("READY=1")
