"""Security descriptors that applications give: what is refused of them, whoever gives them."""

from __future__ import annotations

from openmsmq.model.errors import AccessDenied, IllegalSecurityDescriptor
from openmsmq.security.access.access import Kind, with_known_rights
from openmsmq.security.access.callers import Caller
from openmsmq.security.access.descriptors import BadDescriptor, Descriptor, decode
from openmsmq.security.access.sids import Sid, sid_words


def read_given(descriptor: bytes, kind: Kind) -> Descriptor:
    """Read a descriptor, or raise: one without an access list would let everybody do everything."""
    try:
        wanted = decode(descriptor)
    except BadDescriptor as error:
        raise IllegalSecurityDescriptor(str(error)) from None
    if wanted.entries is None:
        raise IllegalSecurityDescriptor(
            "without an access list everybody could do everything: if that is meant, grant "
            "everyone full"
        )
    return with_known_rights(wanted, kind)


def require_owner(caller: Caller, owner: Sid) -> None:
    """Refuse to give something to somebody else, unless an administrator does."""
    if not (caller.is_unlimited or caller.is_administrator or owner in caller.sids):
        raise AccessDenied(
            f"{caller.name} can become the owner, but not make {sid_words(owner)} it: that is "
            "left to administrators"
        )
