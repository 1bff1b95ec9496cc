"""What an administrator can write down, and what is refused at once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openmsmq.runtime.active_directory.config import (
    PAGE_MAX_COUNT,
    SERVERS_MAX_COUNT,
    ActiveDirectoryConfig,
    Bind,
    Protection,
)
from openmsmq.runtime.active_directory.connection import Server, parse_server

WHOLE: dict[str, Any] = {"servers": ["dc1"], "user": "qm@mq.test", "password_file": "p"}


def test_the_table_is_read_as_it_is_written() -> None:
    config = msgspec.toml.decode(
        """
        servers = ["dc1.mq.test", "dc2.mq.test:1636"]
        base = "OU=Plant,DC=mq,DC=test"
        protection = "sasl"
        bind = "gssapi"
        ca_file = "/etc/ssl/ca.pem"
        timeout_s = 5
        """,
        type=ActiveDirectoryConfig,
    )
    assert config.servers == ("dc1.mq.test", "dc2.mq.test:1636")
    assert config.protection is Protection.SASL
    assert config.bind is Bind.GSSAPI


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"servers": []}, "name 1 to"),
        ({"servers": ["x"] * (SERVERS_MAX_COUNT + 1)}, "name 1 to"),
        ({"servers": ["ldap://dc1"]}, "write a host name"),
        ({"protection": "sasl"}, "would travel readable"),
        ({"bind": "gssapi"}, "Kerberos encrypts by itself"),
        ({"user": ""}, "needs user and password_file"),
        ({"password_file": ""}, "needs user and password_file"),
        ({"page_count": PAGE_MAX_COUNT + 1}, "page_count"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"pasword": "x"}, "unknown field"),
        ({"protection": "none"}, "Invalid enum value"),
    ],
)
def test_a_mistake_is_named(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=reason):
        msgspec.convert(WHOLE | change, ActiveDirectoryConfig)


@pytest.mark.parametrize(
    ("text", "protection", "server"),
    [
        ("dc1", Protection.LDAPS, Server("dc1", 636)),
        ("dc1", Protection.START_TLS, Server("dc1", 389)),
        ("dc1:1389", Protection.SASL, Server("dc1", 1389)),
        ("10.0.0.1", Protection.LDAPS, Server("10.0.0.1", 636)),
        ("[fd00::1]", Protection.LDAPS, Server("fd00::1", 636)),
        ("[fd00::1]:99", Protection.LDAPS, Server("fd00::1", 99)),
        ("fd00::1", Protection.LDAPS, Server("fd00::1", 636)),
    ],
)
def test_where_a_server_is(text: str, protection: Protection, server: Server) -> None:
    assert parse_server(text, protection) == server


def test_an_address_is_written_with_brackets() -> None:
    assert Server("fd00::1", 636).text == "[fd00::1]:636"
