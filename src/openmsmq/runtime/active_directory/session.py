"""An open connection with what is known of its server: asks, reads, and writes entries."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Final, TypeVar, cast

import bonsai
from bonsai import LDAPEntry, LDAPModOp, LDAPSearchScope

from openmsmq.model.directory import ObjectKind
from openmsmq.model.errors import AccessDenied, DirectoryFailed, NoDirectory
from openmsmq.model.identity import GUID_BYTES, NIL_GUID, Guid
from openmsmq.runtime.active_directory.config import ActiveDirectoryConfig
from openmsmq.runtime.active_directory.connection import Connection, Server, connect
from openmsmq.runtime.active_directory.failures import failure
from openmsmq.runtime.active_directory.mapping import lists, managers, queues, topology, users
from openmsmq.runtime.active_directory.mapping.entries import (
    Attributes,
    Entry,
    filter_bytes,
    filter_text,
)

ENTRIES_MAX_COUNT: Final = 500_000
"""Entries of one answer; a directory that has more is not copied. [ours]"""

LIST_MEMBERS_MAX_COUNT: Final = 50_000
"""Members of one group; what is larger is no list of queues. [ours]"""

_BATCH_COUNT: Final = 50
"""Entries that are asked for by name or identifier at once. [ours]"""

ATTRIBUTES: Final = tuple(
    dict.fromkeys(
        (
            "objectGUID", "objectClass", "cn", "whenCreated", "whenChanged",
            "nTSecurityDescriptor", *topology.ATTRIBUTES, *managers.ATTRIBUTES,
            *managers.COMPUTER_ATTRIBUTES, *queues.ATTRIBUTES, *users.ATTRIBUTES,
            *lists.ATTRIBUTES, *managers.SETTINGS_ATTRIBUTES,
        )
    )
)  # fmt: skip
"""All that is asked for, of every entry: so an entry is whole whoever has read it."""

_MEMBERS: Final = f"member;range=0-{lists.MEMBERS_PER_ANSWER_COUNT - 1}"
_ROOT: Final = (
    "defaultNamingContext", "configurationNamingContext", "rootDomainNamingContext",
    "dsServiceName", "highestCommittedUSN", "invocationId",
)  # fmt: skip
_RANGE: Final = re.compile(r"member;range=\d+-(\d+|\*)", re.IGNORECASE)
_EXTENSION: Final = re.compile(r"^(<[^>]*>;)+")
_ANY: Final = "(objectClass=*)"

Answer = TypeVar("Answer")


class Session:
    """A bound connection."""

    def __init__(self, config: ActiveDirectoryConfig, server: Server, link: Connection) -> None:
        self.server = server
        self.domain = ""
        self.forest = ""
        self.configuration = ""
        self.base = config.base
        self.incarnation = NIL_GUID
        """Which copy of the directory this server has: another one after it was restored."""
        self._config = config
        self._link = link

    @classmethod
    async def open(cls, config: ActiveDirectoryConfig, server: Server) -> Session:
        """Connect, bind, and learn where everything is."""
        link = await connect(config, server, [*ATTRIBUTES, *_ROOT, "member"])
        session = cls(config, server, link)
        try:
            await session._learn()
        except BaseException:
            session.close()
            raise
        return session

    def close(self) -> None:
        """End the connection."""
        self._link.close()

    async def _learn(self) -> None:
        root = await self._root()
        self.domain = _plain(root.text("defaultNamingContext"))
        self.forest = _plain(root.text("rootDomainNamingContext"))
        self.configuration = _plain(root.text("configurationNamingContext"))
        self.base = self.base or self.domain
        if not (self.domain and self.forest and self.configuration):
            raise NoDirectory(f"{self.server.text} is no domain controller of Active Directory")
        service = await self._search(
            _plain(root.text("dsServiceName")), _ANY, ("invocationId",), LDAPSearchScope.BASE
        )
        incarnation = service[0].value("invocationId") if service else None
        if incarnation is None or len(incarnation) != GUID_BYTES:
            raise AccessDenied(
                f"{self.server.text}: this user may not read invocationId of the server's own "
                "entry, without which its changes cannot be told apart"
            )
        self.incarnation = Guid(incarnation)

    async def _root(self) -> Entry:
        try:
            found = await self._search("", _ANY, _ROOT[:-1], LDAPSearchScope.BASE)
        except DirectoryFailed as problem:
            # A server that does not even tell this is of no use, but the next one may be.
            raise NoDirectory(problem.detail) from None
        if not found:
            raise NoDirectory(f"{self.server.text} does not say what directory it has")
        return found[0]

    async def highest_change(self) -> int:
        """Ask for the number of the last change that this server has."""
        return (await self._root()).number("highestCommittedUSN")

    # Reading.

    async def search(self, base: str, condition: str) -> list[Entry]:
        """Return all entries at and below `base` that a filter selects."""
        found = await self._search(base, condition, (*ATTRIBUTES, _MEMBERS))
        return [await self._with_all_members(entry) for entry in found]

    async def names(self, base: str, condition: str) -> dict[Guid, str]:
        """Return only the names of what `search` would give, by identifier."""
        found = await self._search(base, condition, ("objectGUID",))
        return {entry.identifier: entry.name for entry in found}

    async def get(self, name: str) -> Entry | None:
        """Read one entry by its distinguished name, in whatever form."""
        found = await self._search(name, _ANY, (*ATTRIBUTES, _MEMBERS), LDAPSearchScope.BASE)
        return await self._with_all_members(found[0]) if found else None

    async def find(self, identifier: Guid) -> Entry | None:
        """Read one entry by its identifier.

        MQDSSM 3.1.6.19 searches everything, from an empty base, for the digits of the identifier.
        Servers refuse that base, and compare bytes with bytes; they take an identifier for a name.
        """
        return None if identifier == NIL_GUID else await self.get(f"<GUID={identifier}>")

    async def get_many(self, names: Iterable[str]) -> list[Entry]:
        """Read entries of the domain by their names; those that are not there are left out."""
        return await self._batches([f"(distinguishedName={filter_text(name)})" for name in names])

    async def find_many(self, identifiers: Iterable[Guid], base: str = "") -> list[Entry]:
        """Read entries by their identifiers, those of the domain if no other base is named."""
        conditions = [f"(objectGUID={filter_bytes(known)})" for known in identifiers]
        return await self._batches(conditions, base)

    async def _batches(self, conditions: Sequence[str], base: str = "") -> list[Entry]:
        found: list[Entry] = []
        for start in range(0, len(conditions), _BATCH_COUNT):
            batch = "".join(conditions[start : start + _BATCH_COUNT])
            found += await self.search(base or self.domain, f"(|{batch})")
        return found

    async def _search(
        self,
        base: str,
        condition: str,
        attributes: Sequence[str],
        scope: LDAPSearchScope = LDAPSearchScope.SUBTREE,
    ) -> list[Entry]:
        what = f"search {base or 'the server itself'}"
        if scope is LDAPSearchScope.BASE:
            # The server's own entry cannot be given in pages.
            asked = self._link.search(
                base, scope, condition, list(attributes), timeout=self._config.timeout_s
            )
            return [_entry(found) for found in await self._answered(asked, what)]
        asked = self._link.paged_search(
            base,
            scope,
            condition,
            list(attributes),
            timeout=self._config.timeout_s,
            page_size=self._config.page_count,
        )
        page: Any = await self._answered(asked, what)
        entries = [_entry(found) for found in page]
        while (number := page.acquire_next_page()) is not None:
            page = await self._answered(self._link.answer(number, self._config.timeout_s), what)
            entries += [_entry(found) for found in page]
            if len(entries) > ENTRIES_MAX_COUNT:
                raise DirectoryFailed(
                    f"{what}: more than {ENTRIES_MAX_COUNT} entries; name a smaller base"
                )
        return entries

    async def _with_all_members(self, entry: Entry) -> Entry:
        """Read on where a group has more members than fit into one answer."""
        members = entry.values("member")
        more = entry.value("more members") is not None
        while more and len(members) <= LIST_MEMBERS_MAX_COUNT:
            found = await self._search(
                entry.name, _ANY, (f"member;range={len(members)}-*",), LDAPSearchScope.BASE
            )
            added = found[0].values("member") if found else ()
            members += added
            more = bool(added) and found[0].value("more members") is not None
        if members == entry.values("member"):
            return entry
        attributes = {**entry.attributes, "member": members}
        return Entry(entry.name, entry.identifier, entry.classes, attributes)

    # Writing.

    async def add(
        self, name: str, class_name: str, attributes: Attributes, kind: ObjectKind | None = None
    ) -> None:
        """Create an entry."""

        async def add() -> None:
            entry = LDAPEntry(name)
            entry["objectClass"] = class_name
            for attribute, values in attributes.items():
                if values:
                    entry[attribute] = list(values)
            await self._link.add(entry, timeout=self._config.timeout_s)

        await self._answered(add(), f"create {name}", kind)

    async def modify(
        self, name: str, attributes: Attributes, kind: ObjectKind | None = None
    ) -> None:
        """Replace the values of attributes; without values they go."""

        async def modify() -> None:
            entry = LDAPEntry(name, self._link)
            for attribute, values in attributes.items():
                # bonsai declares each of the values as a tuple.
                entry.change_attribute(attribute, LDAPModOp.REPLACE, *cast("Any", values))
            await entry.modify(timeout=self._config.timeout_s)

        if attributes:
            await self._answered(modify(), f"change {name}", kind)

    async def delete(self, name: str, kind: ObjectKind | None = None) -> None:
        """Remove an entry that has nothing below it."""
        await self._answered(
            self._link.delete(name, timeout=self._config.timeout_s), f"delete {name}", kind
        )

    async def _answered(
        self, asked: Awaitable[Answer], what: str, kind: ObjectKind | None = None
    ) -> Answer:
        try:
            return await asked
        except bonsai.LDAPError as error:
            raise failure(error, f"{self.server.text}: {what}", kind) from None
        except TimeoutError:
            raise NoDirectory(
                f"{self.server.text}: {what}: no answer within {self._config.timeout_s:g} s"
            ) from None


def _plain(name: str) -> str:
    """Return a name without the identifiers that its extended form begins with."""
    return _EXTENSION.sub("", name)


def _entry(found: LDAPEntry) -> Entry:
    attributes: dict[str, tuple[bytes, ...]] = {}
    for name in found:
        if name == "dn":
            continue
        values = tuple(_bytes(value) for value in found[name])
        ranged = _RANGE.fullmatch(name)
        if ranged is None:
            attributes[name.lower()] = values
        else:
            attributes["member"] = values
            if ranged[1] != "*":
                attributes["more members"] = (b"",)
    identifier = attributes.get("objectguid", (bytes(NIL_GUID),))[0]
    classes = attributes.get("objectclass", ())
    return Entry(
        str(found.dn),
        Guid(identifier),
        frozenset(name.decode("ascii", "replace").lower() for name in classes),
        attributes,
    )


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8")
