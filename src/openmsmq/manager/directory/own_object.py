"""What a queue manager says of itself in the directory. [MQDMPR 3.1.1.1]"""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.directory.image import DirectoryImage
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.directory.own_keys import OwnKeys
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.directory import DirectoryObject, DirectoryRole
from openmsmq.model.identity import Guid
from openmsmq.model.names.parts import canonical_ip_address, fold
from openmsmq.model.queue import QUOTAS
from openmsmq.model.topology import (
    DirectoryServerKind,
    EnterpriseInfo,
    QueueManagerInfo,
    Site,
)

DEFAULT_SITE: Final = "Default-Site"
_REGISTERED: Final = (
    "addresses",
    "qualified_computer_name",
    "directory_server",
    "encryption_keys",
    "signing_keys",
)
"""What a queue manager says of itself; the rest of its object is the administrator's."""


class OwnObject:
    """What the directory should know of this queue manager, and what it knows."""

    def __init__(self, base: Foundation, copy: DirectoryCopy, keys: OwnKeys) -> None:
        self._config = base.config
        self._role = base.config.directory.role
        self._counters = base.counters
        self._rng = base.rng
        self._copy = copy
        self._keys = keys

    @property
    def known(self) -> QueueManagerInfo | None:
        """What the directory says of this queue manager; None without a directory too."""
        if self._role is DirectoryRole.NONE:
            return None
        return self._copy.image.managers.get(self._counters.identifier)

    def problem(self) -> str:
        """Return why the directory cannot know us as we are; empty if it can. [MQOD 2.7.6]"""
        named = self._copy.image.manager_named(self._config.name)
        own = self._counters.identifier
        if named is not None and named.identifier != own:
            return (
                f"the directory knows {self._config.name} as {named.identifier}, and this queue "
                f"manager is {own}: remove that object, or start with an empty data directory"
            )
        known = self.known
        if known is not None and known.sites:
            return ""
        return site_problem(self._copy.image, self._config.directory.site)

    def wanted(self) -> QueueManagerInfo | None:
        """Return what the directory should know of us; None if it does."""
        own = self._own_info(site_named(self._copy.image, self._config.directory.site))
        known = self.known
        if known is None:
            return own
        said = {name: value for name in _REGISTERED if (value := getattr(own, name))}
        wanted = msgspec.structs.replace(
            known, sites=known.sites or own.sites, **said, **self._configured_quotas()
        )
        return None if wanted == known else wanted

    def first_objects(self) -> list[DirectoryObject]:
        """Return what a new directory begins with: its enterprise, a site, and us."""
        site = Site(
            identifier=Guid(self._rng.randbytes(16)),
            name=self._config.directory.site or DEFAULT_SITE,
        )
        return [
            EnterpriseInfo(
                identifier=Guid(self._rng.randbytes(16)), name=self._config.directory.enterprise
            ),
            site,
            self._own_info(site),
        ]

    def _own_info(self, site: Site | None) -> QueueManagerInfo:
        config = self._config.directory
        hosts = self._config.addresses if config.publishes_addresses else ()
        literal = (canonical_ip_address(host) for host in hosts)
        info = QueueManagerInfo(
            identifier=self._counters.identifier,
            computer_name=self._config.name,
            qualified_computer_name=config.qualified_name,
            addresses=tuple(address for address in literal if address is not None),
            version=self._config.software,
            sites=() if site is None else (site.identifier,),
            routing_server=config.routing_server,
            directory_server=self._server_kind(),
            encryption_keys=self._keys.public,
            signing_keys=self._keys.certificates,
        )
        return msgspec.structs.replace(info, **self._configured_quotas())

    def _configured_quotas(self) -> dict[str, int]:
        """Return what it says of itself only if its configuration does."""
        return {name: value for name in QUOTAS if (value := getattr(self._config, name))}

    def _server_kind(self) -> DirectoryServerKind | None:
        if self._role is DirectoryRole.ORIGINAL:
            return DirectoryServerKind.PRIMARY_ENTERPRISE_CONTROLLER
        serves = self._config.directory.serves_others
        return DirectoryServerKind.BACKUP_SITE_CONTROLLER if serves else None


def site_named(image: DirectoryImage, name: str) -> Site | None:
    """Find the site in which a queue manager registers itself: by name, or else the first."""
    sites = sorted(image.sites.values(), key=lambda site: site.name)
    if not name:
        return next(iter(sites), None)
    return next((site for site in sites if fold(site.name) == fold(name)), None)


def site_problem(image: DirectoryImage, name: str) -> str:
    """Say so if a queue manager is to be in a site that is not there."""
    if not name or site_named(image, name) is not None:
        return ""
    there = ", ".join(sorted(site.name for site in image.sites.values())) or "none"
    return (
        f"the directory has no site {name!r} (it has {there}): correct `site` in the configuration "
        "of this queue manager, or add the site with `openmsmq directory apply` at the server of "
        "the directory"
    )
