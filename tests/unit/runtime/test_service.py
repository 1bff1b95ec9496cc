from __future__ import annotations

import asyncio
import socket

import pytest

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.operating.event_loop import loop_factory
from openmsmq.runtime.service import manager_config


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
