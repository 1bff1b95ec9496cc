"""The settings of servers: an entry for each in every site it is in. [MQDSSM 3.1.6.20.1]

Queue managers that route, serve the directory or serve dependent clients are listed in their
sites, so that others find them there without looking through the domain.
"""

from __future__ import annotations

from collections.abc import Sequence

from openmsmq.model.identity import Guid
from openmsmq.model.topology import QueueManagerInfo
from openmsmq.runtime.active_directory.mapping.entries import (
    Entry,
    child_name,
    differences,
    filter_bytes,
    parent_name,
    text_value,
)
from openmsmq.runtime.active_directory.mapping.managers import (
    SETTINGS_CLASS,
    SETTINGS_ENTRY,
    serves_others,
    settings_attributes,
)
from openmsmq.runtime.active_directory.mapping.topology import SITE_CLASS
from openmsmq.runtime.active_directory.session import Session


class ServerSettings:
    """Keeps the settings of queue managers as these are."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def write(self, manager: QueueManagerInfo, computer: str) -> None:
        """Let a server have settings in each of its sites, and nowhere else.

        `computer` is the name of its computer's entry. [MQDSSM 3.1.6.1.1.3, 3.1.6.7.1.9]
        """
        wanted: dict[Guid, str] = {}
        if serves_others(manager):
            for site in await self._sites(manager.sites):
                host = manager.computer_name.partition(".")[0]
                server = child_name(host, child_name("Servers", site.name))
                wanted[site.identifier] = child_name(SETTINGS_ENTRY, server)
        attributes = settings_attributes(manager)
        for known in await self._of(manager.identifier):
            here = await self._session.get(_site_name(known))
            if here is None or wanted.pop(here.identifier, None) is None:
                await self._session.delete(known.name)
                continue
            now = {name: known.values(name) for name in attributes}
            await self._session.modify(known.name, differences(now, attributes))
        for name in wanted.values():
            await self._make_server(parent_name(name), computer)
            if await self._session.get(name) is not None:
                # Left over from another installation on this computer. [MQDSSM 3.1.6.1.1.3]
                await self._session.delete(name)
            await self._session.add(name, SETTINGS_CLASS, attributes)

    async def delete(self, manager: Guid) -> None:
        """Delete all settings of a queue manager. [MQDSSM 3.1.6.2.1.3]"""
        for known in await self._of(manager):
            await self._session.delete(known.name)

    async def _sites(self, identifiers: Sequence[Guid]) -> list[Entry]:
        found = [await self._session.find(identifier) for identifier in identifiers]
        return [entry for entry in found if entry is not None and entry.is_a(SITE_CLASS)]

    async def _of(self, manager: Guid) -> list[Entry]:
        return await self._session.search(
            f"CN=Sites,{self._session.configuration}",
            f"(&(objectClass={SETTINGS_CLASS})(mSMQQMID={filter_bytes(manager)}))",
        )

    async def _make_server(self, name: str, computer: str) -> None:
        """Make the entries above settings where a site does not have them yet."""
        container = parent_name(name)
        if await self._session.get(container) is None:
            await self._session.add(container, "serversContainer", {})
        if await self._session.get(name) is None:
            await self._session.add(name, "server", {"serverReference": text_value(computer)})


def _site_name(settings: Entry) -> str:
    """Settings stand below a server, that in the container of servers, and that in a site."""
    return parent_name(parent_name(parent_name(settings.name)))
