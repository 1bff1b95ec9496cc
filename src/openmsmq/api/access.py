"""Requests and replies of the application interface that are about who may do what."""

from __future__ import annotations

from openmsmq.api.base import Done, Name, Octets, Reply, Request
from openmsmq.api.facts import Check, Facts, Need, Repeats, on_object
from openmsmq.model.access import QueueAccess


class Security(Reply, frozen=True, tag="security"):
    """Whose an object is and who may do what with it: a self-relative SECURITY_DESCRIPTOR."""

    descriptor: bytes
    is_default: bool
    """Whether nobody has changed it."""


class GetSecurity(Request[Security], frozen=True, tag="get-security"):
    """Ask for the security descriptor of a queue, or of the queue manager if `name` is empty."""

    facts = Facts(on_object(QueueAccess.GET_PERMISSIONS), Repeats.ALWAYS)

    name: Name = ""


class SetSecurity(Request[Done], frozen=True, tag="set-security"):
    """Give a queue, or the queue manager, another security descriptor.

    One without an owner leaves the owner as it is; an empty one is the default.
    """

    facts = Facts(Need(Check.SECURITY), Repeats.ALWAYS, is_audited=True)

    name: Name
    descriptor: Octets


class TakeOwnership(Request[Done], frozen=True, tag="take-ownership"):
    """Become the owner of a queue, or of the queue manager if `name` is empty."""

    facts = Facts(on_object(QueueAccess.TAKE_OWNERSHIP), Repeats.ALWAYS, is_audited=True)

    name: Name = ""
