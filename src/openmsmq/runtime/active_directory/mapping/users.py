"""Accounts with certificates, those of computers included. [MQDSSM 3.1.6.11.6]"""

from __future__ import annotations

from typing import Final

from openmsmq.model.errors import IllegalPropertyValue
from openmsmq.model.topology import UserInfo
from openmsmq.runtime.active_directory.mapping.entries import Attributes, Entry, Malformed
from openmsmq.runtime.active_directory.mapping.managers import (
    certificate_attributes,
    read_certificates,
)
from openmsmq.wire.keys import UserCertificate

USER_CLASS: Final = "user"

ATTRIBUTES: Final = ("objectSid", "mSMQSignCertificates", "mSMQDigests")


def read_user(entry: Entry) -> UserInfo:
    """Read a user. The digests stand in the order of the certificates, whatever comes first."""
    certificates = read_certificates(entry)
    digests = [known.digest for known in certificates]
    try:
        return UserInfo(
            identifier=entry.identifier,
            security_identifier=entry.needed("objectSid"),
            certificates=tuple(known.certificate for known in certificates),
            certificate_digests=tuple(
                dict.fromkeys((*digests, *sorted(entry.values("mSMQDigests"))))
            ),
        )
    except IllegalPropertyValue as error:
        raise Malformed(f"{entry.name}: {error.detail}") from None


def user_attributes(user: UserInfo, known: tuple[UserCertificate, ...] = ()) -> Attributes:
    """Return the attributes of a user that are ours to write."""
    return certificate_attributes(user.certificates, user.certificate_digests, known)
