"""How a queue manager joins an enterprise: which directory it uses, and who it is there.

A directory may know a computer before its queue manager has ever run, because an administrator has
described the enterprise. Then the directory says who the queue manager is, and the queue manager
must ask before it begins: its identity goes into everything it stores and sends. [MQOD 2.7.6]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from openmsmq.client.settings import API_PORT
from openmsmq.directory.image import DirectoryImage
from openmsmq.manager.config import DirectoryConfig
from openmsmq.manager.directory.own_object import site_named, site_problem
from openmsmq.model.directory import NOWHERE, DirectoryRole
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.topology import QueueManagerInfo
from openmsmq.protocol.discovery.client import DiscoveryClient
from openmsmq.runtime.api.server import read_token
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.directory.discovery import discover
from openmsmq.runtime.directory.embedded import EmbeddedDirectory
from openmsmq.runtime.directory.port import DirectoryPort
from openmsmq.runtime.operating_system.interfaces import local_networks
from openmsmq.runtime.start_errors import NotYet, StartError

if TYPE_CHECKING:
    from openmsmq.runtime.active_directory.client import ActiveDirectory


def directory_config(config: ServerConfig) -> DirectoryConfig:
    """Tell the queue manager how it works with its directory."""
    return DirectoryConfig(
        role=config.directory_role,
        serves_others=config.directory_server,
        poll_ms=config.directory_poll_s * 1000,
        probe_ms=min(config.directory_poll_s * 2000, DirectoryConfig().probe_ms),
        enterprise=config.enterprise,
        site=config.site,
        routing_server=config.routing_server,
        publishes_addresses=not config.active_directory,
        server=_server_name(config),
        qualified_name=config.qualified_name,
    )


def _server_name(config: ServerConfig) -> str:
    """Name the server at which the directory is changed, as others are told it. [MQCN 3.3.5.1]"""
    servers = config.active_directory.get("servers") or [""]
    return str(servers[0]).partition(":")[0]


class Membership:
    """The directory that a queue manager belongs to; `port` is None if it has it itself."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._active: ActiveDirectory | None = None
        self.port: DirectoryPort | None = None
        if config.active_directory:
            self.port = self._active = _active_directory(config)
        elif config.directory_role is DirectoryRole.COPY:
            self.port = _embedded(config)

    async def identifier(self) -> Guid | None:
        """Ask the directory who a new queue manager is; None if it may choose itself."""
        if self.port is None:
            return None
        try:
            told = await self.port.changes(NOWHERE)
            image = DirectoryImage().changed(told.changes)
            known = image.manager_named(self._config.manager_name)
            if known is not None:
                return known.identifier
            if self._active is not None:
                return await self._registered(self._active, image)
        except MsmqError as error:
            raise NotYet(
                f"a new queue manager asks its directory who it is, and {error.detail}; start it "
                "when the directory can be reached, or with start_without_directory"
            ) from None
        return None

    async def _registered(self, active: ActiveDirectory, image: DirectoryImage) -> Guid:
        """Enter a new queue manager into Active Directory, which chooses its identifier."""
        config = self._config
        problem = site_problem(image, config.site)
        if problem:
            raise StartError(problem)
        site = site_named(image, config.site)
        info = QueueManagerInfo(
            identifier=NIL_GUID,
            computer_name=config.manager_name,
            qualified_computer_name=config.qualified_name,
            sites=() if site is None else (site.identifier,),
            routing_server=config.routing_server,
        )
        return (await active.register(info)).identifier


def _active_directory(config: ServerConfig) -> ActiveDirectory:
    try:
        from openmsmq.runtime.active_directory.client import ActiveDirectory
        from openmsmq.runtime.active_directory.config import ActiveDirectoryConfig
    except ImportError:
        raise ConfigError(
            "[active_directory] needs the LDAP client: install openmsmq[directory]"
        ) from None
    try:
        return ActiveDirectory(msgspec.convert(config.active_directory, ActiveDirectoryConfig))
    except (msgspec.ValidationError, ValueError) as error:
        raise ConfigError(f"[active_directory] is wrong: {error}") from None


def _embedded(config: ServerConfig) -> EmbeddedDirectory:
    token = ""
    if config.directory_token_file:
        token = read_token(config.directory_token_file).decode()
    tls: bool | str = config.directory_tls or False
    if tls == "system":
        tls = True
    client = DiscoveryClient(NIL_GUID, NIL_GUID)

    async def find() -> tuple[str, ...]:
        networks = local_networks([config.address])
        found = await discover(client, networks, port=config.session_port, force=True)
        if found is None:
            return ()
        return tuple(f"{host}:{API_PORT}" for host in (found.address, *found.servers))

    return EmbeddedDirectory(
        config.directory, token=token, tls=tls, find=find if config.directory_discovery else None
    )
