"""What tests do with the domain: ask it through our client, and look at it through ldap3."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import ldap3
import msgspec

from openmsmq.model.directory import NOWHERE, Change, DirectoryChanges, DirectoryObject
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.queue import QueueKind, QueueProperties
from openmsmq.model.topology import EnterpriseInfo, QueueManagerInfo, Site
from openmsmq.runtime.active_directory.client import ActiveDirectory
from openmsmq.runtime.active_directory.config import ActiveDirectoryConfig
from tests.directory.samba import ADMINISTRATOR, PASSWORD, ROOT, DomainController

CONFIGURATION = f"CN=Configuration,{ROOT}"
COMPUTERS = f"CN=Computers,{ROOT}"
USERS = f"CN=Users,{ROOT}"
ORDINARY = "clerk@mq.test"

Answer = TypeVar("Answer")
Kind = TypeVar("Kind", bound=DirectoryObject)


class Domain:
    """A domain with an enterprise, two sites, an ordinary user, and computers on demand."""

    def __init__(self, controller: DomainController) -> None:
        self.controller = controller
        folder = controller.folder
        (folder / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
        self.config = ActiveDirectoryConfig(
            servers=(controller.address,),
            user=ADMINISTRATOR,
            password_file=str(folder / "password"),
            ca_file=str(controller.ca_file),
            timeout_s=15,
        )
        self._looker: ldap3.Connection | None = None
        self.site_a = self.site_b = Site(identifier=NIL_GUID, name="")
        self.enterprise = EnterpriseInfo(identifier=NIL_GUID)

    def furnish(self) -> None:
        """Create what all tests use."""
        self.enterprise, self.site_a, self.site_b = self.write(
            EnterpriseInfo(identifier=Guid(b"\1" * 16)),
            Site(identifier=Guid(b"\2" * 16), name="SiteA"),
            Site(identifier=Guid(b"\3" * 16), name="SiteB"),
        )
        self.add_account(f"CN=clerk,{USERS}", "user", userPrincipalName=ORDINARY)

    def close(self) -> None:
        if self._looker is not None:
            self._looker.unbind()
            self._looker = None

    # Our client.

    def ask(
        self, question: Callable[[ActiveDirectory], Awaitable[Answer]], **changed: Any
    ) -> Answer:
        """Ask through a client of its own, with the configuration changed in some places."""

        async def asking() -> Answer:
            directory = ActiveDirectory(msgspec.structs.replace(self.config, **changed))
            try:
                return await question(directory)
            finally:
                await directory.close()

        return asyncio.run(asking())

    def write(self, *changes: Change, **changed: Any) -> Any:
        """Write and give what came of it: one object alone, several as a tuple."""
        written = self.ask(lambda directory: directory.write(changes), **changed)
        return written[0] if len(written) == 1 else written

    def read(self, **changed: Any) -> DirectoryChanges:
        """Read everything."""
        return self.ask(lambda directory: directory.changes(NOWHERE), **changed)

    def read_one(self, wanted: Kind) -> Kind | None:
        """Read everything, and pick the object that has the kind and identifier of this one."""
        for found in self.read().changes:
            if type(found) is type(wanted) and found.identifier == wanted.identifier:
                return found
        return None

    def as_user(self, user: str, password: str = PASSWORD) -> dict[str, str]:
        """Return the configuration with which another user asks."""
        name = user.replace("$", "").partition("@")[0]
        path = self.controller.folder / f"password-{name}"
        path.write_text(password, encoding="utf-8")
        return {"user": user, "password_file": str(path)}

    def new_manager(self, computer: str, **properties: Any) -> QueueManagerInfo:
        """Create a computer and publish its queue manager in site A."""
        self.add_computer(computer)
        return self.write(
            QueueManagerInfo(
                identifier=NIL_GUID,
                computer_name=computer,
                **{"sites": (self.site_a.identifier,), **properties},
            )
        )

    def new_queue(self, manager: QueueManagerInfo, name: str, **properties: Any) -> QueueProperties:
        return self.write(queue_of(manager, name, **properties))

    # ldap3.

    @property
    def looker(self) -> ldap3.Connection:
        if self._looker is None or not self._looker.bound or self._looker.closed:
            server = ldap3.Server(self.controller.address, use_ssl=True, get_info=ldap3.NONE)
            self._looker = ldap3.Connection(
                server, ADMINISTRATOR, PASSWORD, auto_bind=True, check_names=False
            )
        return self._looker

    def look(self, name: str, *attributes: str) -> dict[str, list[bytes]] | None:
        """Read an entry through ldap3, as bytes."""
        looker = self.looker
        looker.search(name, "(objectClass=*)", ldap3.BASE, attributes=list(attributes) or ["*"])
        return dict(looker.response[0]["raw_attributes"]) if looker.response else None

    def look_below(self, name: str, condition: str) -> list[str]:
        """Return the names of entries through ldap3."""
        self.looker.search(name, condition, attributes=["cn"])
        return [found["dn"] for found in self.looker.response if "dn" in found]

    def add_computer(self, name: str, password: str = PASSWORD, **attributes: Any) -> str:
        entry = f"CN={name},{COMPUTERS}"
        self.add_account(
            entry,
            "computer",
            password,
            sAMAccountName=f"{name}$",
            userAccountControl="4096",
            dNSHostName=f"{name.lower()}.mq.test",
            **attributes,
        )
        return entry

    def add_account(
        self, name: str, class_name: str, password: str = PASSWORD, **attributes: Any
    ) -> None:
        given = {
            "sAMAccountName": name.split(",")[0][3:],
            "userAccountControl": "512",
            "unicodePwd": f'"{password}"'.encode("utf-16-le"),
            **attributes,
        }
        assert self.looker.add(name, class_name, given), self.looker.result

    def replace(self, name: str, **attributes: Any) -> None:
        changes = {
            attribute: [(ldap3.MODIFY_REPLACE, values if isinstance(values, list) else [values])]
            for attribute, values in attributes.items()
        }
        assert self.looker.modify(name, changes), self.looker.result

    def delete(self, *names: str) -> None:
        for name in names:
            assert self.looker.delete(name), self.looker.result


def queue_of(manager: QueueManagerInfo, name: str, **properties: Any) -> QueueProperties:
    """A public queue that is not created yet."""
    return QueueProperties(
        identifier=NIL_GUID,
        path_name=f"{manager.computer_name}\\{name}",
        kind=QueueKind.PUBLIC,
        manager=manager.identifier,
        **properties,
    )


def of_kind(changes: Sequence[Change], kind: type[Kind]) -> list[Kind]:
    return [change for change in changes if isinstance(change, kind)]
