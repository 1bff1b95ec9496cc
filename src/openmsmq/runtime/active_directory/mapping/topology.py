"""Enterprise, sites and routing links as entries. [MQDSSM 3.1.6.11.3-5, 3.1.6.7.3-5]"""

from __future__ import annotations

from typing import Final

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import REACH_QUEUE_DEFAULT_S
from openmsmq.model.topology import EnterpriseInfo, RoutingLink, Site
from openmsmq.runtime.active_directory.mapping.descriptors import (
    SITE_RIGHTS,
    translate_from_directory,
    translate_to_directory,
)
from openmsmq.runtime.active_directory.mapping.entries import (
    Attributes,
    Entry,
    Malformed,
    flag_value,
    number_value,
    reference,
    reference_values,
    text_value,
)

ENTERPRISE_CLASS: Final = "mSMQEnterpriseSettings"
SITE_CLASS: Final = "site"
LINK_CLASS: Final = "mSMQSiteLink"

ATTRIBUTES: Final = (
    "mSMQNameStyle", "mSMQCSPName", "mSMQLongLived", "mSMQVersion", "mSMQInterval1",
    "mSMQInterval2", "mSMQSiteForeign", "mSMQNt4Stub", "description", "mSMQCost", "mSMQSite1",
    "mSMQSite2", "mSMQSiteGates",
)  # fmt: skip

WITHIN_SITE_DEFAULT_S: Final = 2
"""How often controllers of one site exchange changes; MSMQ 1.0. [MQDSSM 3.1.6.11.4, note 15]"""

BETWEEN_SITES_DEFAULT_S: Final = 10
"""How often controllers of different sites do. [MQDSSM 3.1.6.11.4, note 15]"""

_OLD_VERSION: Final = 3
_NEW_VERSION: Final = 200


def read_enterprise(entry: Entry, forest: str) -> EnterpriseInfo:
    """Read the enterprise; its name is that of the forest's first domain."""
    return EnterpriseInfo(
        identifier=entry.identifier,
        name=forest,
        reach_queue_default_s=entry.unsigned("mSMQLongLived", REACH_QUEUE_DEFAULT_S),
        weakened_security=entry.flag("mSMQNameStyle"),
        # What is neither Y nor N stands there since Windows 2000, and counts as nothing.
        notify_old_managers=entry.text("mSMQCSPName", "Y") != "N",
        old_directory=entry.number("mSMQVersion", _OLD_VERSION) == _OLD_VERSION,
        security_descriptor=entry.needed("nTSecurityDescriptor"),
    )


def enterprise_attributes(enterprise: EnterpriseInfo) -> Attributes:
    """Return the attributes of the enterprise; name and security stay as the forest has them."""
    return {
        "mSMQNameStyle": flag_value(enterprise.weakened_security),
        "mSMQCSPName": text_value("Y" if enterprise.notify_old_managers else "N"),
        "mSMQLongLived": number_value(enterprise.reach_queue_default_s),
        "mSMQVersion": number_value(_OLD_VERSION if enterprise.old_directory else _NEW_VERSION),
    }


def read_site(entry: Entry) -> Site:
    """Read a site. One that was made without MSMQ in mind has none of its attributes."""
    return Site(
        identifier=entry.identifier,
        name=entry.needed("cn").decode("utf-8", "replace"),
        foreign=entry.flag("mSMQSiteForeign"),
        replicate_within_site_s=entry.unsigned("mSMQInterval1", WITHIN_SITE_DEFAULT_S),
        replicate_between_sites_s=entry.unsigned("mSMQInterval2", BETWEEN_SITES_DEFAULT_S),
        directory_name=entry.name,
        migrated=entry.number("mSMQNt4Stub") == 1,
        security_descriptor=translate_from_directory(
            entry.needed("nTSecurityDescriptor"), SITE_RIGHTS
        ),
    )


def site_attributes(site: Site) -> Attributes:
    """Return the attributes of a site, those apart that Active Directory has no place for."""
    return {
        "mSMQInterval1": number_value(site.replicate_within_site_s),
        "mSMQInterval2": number_value(site.replicate_between_sites_s),
        "mSMQSiteForeign": flag_value(site.foreign),
        "mSMQNt4Stub": number_value(int(site.migrated)),
        "nTSecurityDescriptor": translate_to_directory(site.security_descriptor, SITE_RIGHTS),
    }


def read_link(entry: Entry) -> RoutingLink:
    """Read a routing link; without both of its sites and a cost it is none."""
    entry.needed("mSMQCost")
    return RoutingLink(
        identifier=entry.identifier,
        site1=_site(entry, "mSMQSite1"),
        site2=_site(entry, "mSMQSite2"),
        cost=entry.number("mSMQCost"),
        site_gates=entry.references("mSMQSiteGates"),
        description=entry.text("description"),
        directory_name=entry.name,
    )


def _site(entry: Entry, attribute: str) -> Guid:
    found = entry.references(attribute)
    if not found:
        raise Malformed(f"{entry.name} leads to no site: {attribute} is not there")
    return found[0]


def link_attributes(link: RoutingLink) -> Attributes:
    """Return the attributes of a routing link."""
    return {
        "description": text_value(link.description),
        "mSMQCost": number_value(link.cost),
        "mSMQSite1": (reference(link.site1),),
        "mSMQSite2": (reference(link.site2),),
        "mSMQSiteGates": reference_values(gate for gate in link.site_gates if gate != NIL_GUID),
    }


def link_name(link: RoutingLink) -> str:
    """Return the name of a link's entry: the digits of both sites. [MQDSSM 3.1.6.1.4.2]"""
    return f"{link.site1}{link.site2}".replace("-", "").upper()
