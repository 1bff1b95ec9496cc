"""Who somebody is that has proved a name by Kerberos."""

from __future__ import annotations

import msgspec

from openmsmq.security.access.callers import Caller, domain_caller
from openmsmq.security.access.sids import Sid
from openmsmq.security.authentication.pac import DomainUser
from openmsmq.security.authentication.ports import AuthenticationFailed


class DomainUsers(msgspec.Struct, frozen=True):
    """What an operator says about users who come by Kerberos."""

    principals: dict[str, Sid] = {}
    """Who those are of whom a ticket says nothing but the name, such as `alice@EXAMPLE.COM`."""
    administrators: frozenset[Sid] = frozenset()
    """Users and groups of the domain who look after this queue manager."""

    def identify(self, principal: str, told: DomainUser | None) -> Caller:
        """Return who somebody is, or raise `AuthenticationFailed`."""
        if told is None:
            user = self.principals.get(principal)
            if user is None:
                raise AuthenticationFailed(
                    f"the ticket of {principal} has no SID, and kerberos_principals does not say "
                    "whose it is"
                )
            told = DomainUser(user, frozenset())
        is_administrator = not self.administrators.isdisjoint({told.user, *told.groups})
        return domain_caller(principal, told.user, told.groups, administrator=is_administrator)
