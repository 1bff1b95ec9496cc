"""One connection to one server: how it is reached, proven genuine, and asked without blocking.

libldap connects and shakes hands while it holds up the whole process. So a server is first tried
with Python's own sockets, which can wait beside other work and say more clearly what is wrong;
only one that has answered is handed to libldap. Later requests never wait inside libldap.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Final

import bonsai
import msgspec
from bonsai.ldapconnection import BaseLDAPConnection

from openmsmq.model.errors import NoDirectory
from openmsmq.runtime.active_directory.config import ActiveDirectoryConfig, Bind, Protection
from openmsmq.runtime.active_directory.failures import failure

LDAP_PORT: Final = 389
LDAPS_PORT: Final = 636

_TURN_S: Final = 0.02
"""How often an answer is looked for although nothing has arrived. libldap sets up a connection
in steps of its own, and may have read more than one answer at once."""

_ALL_OF_DESCRIPTOR: Final = 7
"""Owner, group and list of rights; without asking for these, servers refuse for want of the right
to see the audit list. [MS-ADTS 3.1.1.3.4.1.11]"""

_GUIDS_AS_TEXT: Final = 1
_ENCRYPTED: Final = 56
"""What Kerberos calls encrypted, whatever the strength of its key, and not only signed."""

_START_TLS: Final = b"\x30\x1d\x02\x01\x01\x77\x18\x80\x16" + b"1.3.6.1.4.1.1466.20037"
_START_TLS_ANSWER: Final = b"\x0a\x01\x00"
_ANSWER_MAX_BYTES: Final = 4096


class Server(msgspec.Struct, frozen=True):
    """Where a server is."""

    host: str
    port: int

    @property
    def text(self) -> str:
        """Host and port, as people write them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_server(text: str, protection: Protection) -> Server:
    """Read `host`, `host:port`, `[IPv6]` or `[IPv6]:port`."""
    default = LDAPS_PORT if protection is Protection.LDAPS else LDAP_PORT
    host, separator, port = text.strip().rpartition(":")
    if not separator or text.endswith("]") or (":" in host.strip("[]") and not host.endswith("]")):
        return Server(text.strip().strip("[]"), default)
    return Server(host.strip("[]"), int(port))


class Connection(BaseLDAPConnection):
    """A connection whose requests are awaited. bonsai's own would ask without pause."""

    def __init__(self, client: bonsai.LDAPClient) -> None:
        super().__init__(client, is_async=True)

    def _evaluate(self, msg_id: int, timeout: float | None = None) -> Awaitable[Any]:
        return self.answer(msg_id, timeout)

    async def answer(self, number: int, timeout_s: float | None) -> Any:
        """Wait for the answer to a request."""
        async with asyncio.timeout(timeout_s):
            while (answer := self.get_result(number)) is None:
                await self._something_arrived()
            return answer

    async def _something_arrived(self) -> None:
        loop = asyncio.get_running_loop()
        arrived = loop.create_future()
        descriptor = self.fileno()
        if descriptor >= 0:
            loop.add_reader(descriptor, _settle, arrived)
        turn = loop.call_later(_TURN_S, _settle, arrived)
        try:
            await arrived
        finally:
            turn.cancel()
            if descriptor >= 0:
                loop.remove_reader(descriptor)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def connect(
    config: ActiveDirectoryConfig, server: Server, raw_attributes: list[str]
) -> Connection:
    """Connect to a server and bind; `NoDirectory` when it does not answer or is not genuine."""
    await _try(config, server)
    client = _client(config, server, raw_attributes)
    connection = Connection(client)
    what = f"bind to {server.text}"
    try:
        await connection.open(config.timeout_s)
    except bonsai.LDAPError as error:
        connection.close()
        raise failure(error, what) from None
    except TimeoutError:
        connection.close()
        raise NoDirectory(f"{what}: no answer within {config.timeout_s:g} s") from None
    return connection


def _client(
    config: ActiveDirectoryConfig, server: Server, raw_attributes: list[str]
) -> bonsai.LDAPClient:
    scheme = "ldaps" if config.protection is Protection.LDAPS else "ldap"
    client = bonsai.LDAPClient(
        f"{scheme}://{server.text}", config.protection is Protection.START_TLS
    )
    client.set_cert_policy("demand")
    if config.ca_file:
        client.set_ca_cert(config.ca_file)
    if config.bind is Bind.SIMPLE:
        client.set_credentials("SIMPLE", user=config.user, password=_password(config))
    else:
        client.set_credentials("GSSAPI")
        client.set_sasl_security_properties(min_ssf=_ENCRYPTED)
    client.set_extended_dn(_GUIDS_AS_TEXT)
    client.set_sd_flags(_ALL_OF_DESCRIPTOR)
    client.set_ignore_referrals(True)
    client.set_server_chase_referrals(False)
    client.set_auto_page_acquire(False)
    client.set_raw_attributes(raw_attributes)
    return client


def _password(config: ActiveDirectoryConfig) -> str:
    try:
        lines = Path(config.password_file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise NoDirectory(
            f"cannot read the password file {config.password_file}: {error}"
        ) from None
    if not lines or not lines[0]:
        # A bind without a password would succeed, as one of nobody.
        raise NoDirectory(f"the password file {config.password_file} is empty")
    return lines[0]


async def _try(config: ActiveDirectoryConfig, server: Server) -> None:
    """Reach a server and check its certificate."""
    try:
        async with asyncio.timeout(config.timeout_s):
            await _shake_hands(config, server)
    except TimeoutError:
        reason = f"no answer within {config.timeout_s:g} s"
    except ssl.SSLCertVerificationError as error:
        reason = (
            f"its certificate is not to be trusted: {error.verify_message}; name the certificate "
            "of its authority as ca_file, and the server as its certificate does"
        )
    except ssl.SSLError as error:
        reason = f"it does not speak TLS as we do: {error.reason or error}"
    except socket.gaierror as error:
        reason = f"its name is not known: {error.strerror}"
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
    else:
        return
    raise NoDirectory(f"{server.text}: {reason}")


def _trusted(config: ActiveDirectoryConfig) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=config.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        problem = f"cannot read the certificates in {config.ca_file}: {error}"
        raise NoDirectory(problem) from None


async def _shake_hands(config: ActiveDirectoryConfig, server: Server) -> None:
    is_secure = config.protection is not Protection.SASL
    context = _trusted(config) if is_secure else None
    at_once = context if config.protection is Protection.LDAPS else None
    reader, writer = await asyncio.open_connection(
        server.host, server.port, ssl=at_once, limit=_ANSWER_MAX_BYTES
    )
    try:
        if config.protection is Protection.START_TLS and context is not None:
            writer.write(_START_TLS)
            answer = await reader.read(_ANSWER_MAX_BYTES)
            if _START_TLS_ANSWER not in answer:
                raise OSError("it does not offer StartTLS")
            await writer.start_tls(context, server_hostname=server.host)
    finally:
        # Nothing more is said, so nobody needs to agree to the end.
        writer.transport.abort()
