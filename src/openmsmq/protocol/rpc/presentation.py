"""Presentation contexts: which interfaces a connection speaks to, and how. [C706 12.6.3.1]

The rules beyond the specification are those that Windows has: Samba's own tests ask for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from openmsmq.model.limits import RPC_CONTEXTS_MAX_COUNT
from openmsmq.protocol.rpc.states import InterfaceFacts
from openmsmq.wire.rpc.pdus import Offer, Outcome, Result
from openmsmq.wire.rpc.syntaxes import NDR, NDR64, NO_SYNTAX, Syntax, offered_features

SECURITY_MULTIPLEXING: Final = 1
KEEP_ON_ORPHAN: Final = 2
_FEATURES: Final = SECURITY_MULTIPLEXING | KEEP_ON_ORPHAN

_UNKNOWN_INTERFACE: Final = Result(Outcome.PROVIDER_REJECTION, 1, NO_SYNTAX)
_UNKNOWN_TRANSFER: Final = Result(Outcome.PROVIDER_REJECTION, 2, NO_SYNTAX)
_TOO_MANY: Final = Result(Outcome.PROVIDER_REJECTION, 3, NO_SYNTAX)
_ACCEPTED: Final = Result(Outcome.ACCEPTED, 0, NDR)
_KNOWN: Final = (NDR, NDR64)


class BadOffer(Exception):
    """An offer that no client makes which knows what it has agreed upon before."""


class Presentation:
    """The contexts of one connection, by the numbers that its client gives them."""

    def __init__(self, interfaces: Mapping[Syntax, InterfaceFacts]) -> None:
        self._interfaces = interfaces
        self._contexts: dict[int, Syntax] = {}

    def find(self, context: int) -> Syntax | None:
        """Return the interface that a context stands for."""
        return self._contexts.get(context)

    def negotiate(self, offers: tuple[Offer, ...], *, first: bool) -> tuple[Result, ...]:
        """Answer offers one by one, or raise `BadOffer`; features are offered the first time."""
        if not offers or not all(offer.transfers for offer in offers):
            raise BadOffer("it offers nothing")
        results: list[Result] = []
        accepted: set[Syntax] = set()
        has_features = False
        for offer in offers:
            features = offered_features(offer.transfers[0]) if first else None
            if features is not None:
                if has_features:
                    raise BadOffer("it offers features twice")
                has_features = True
                results.append(Result(Outcome.NEGOTIATED, features & _FEATURES, NO_SYNTAX))
                continue
            result = self._judge(offer)
            if result is _ACCEPTED:
                if offer.interface in accepted:
                    # One way to write parameters is chosen for an interface, and that is done.
                    result = _UNKNOWN_TRANSFER
                elif self._has_room(offer.context):
                    accepted.add(offer.interface)
                    self._contexts.setdefault(offer.context, self._found(offer.interface))
                else:
                    result = _TOO_MANY
            results.append(result)
        return tuple(results)

    def _judge(self, offer: Offer) -> Result:
        before = self._contexts.get(offer.context)
        known = [transfer for transfer in offer.transfers if transfer in _KNOWN]
        if before is not None:
            if before != self._found(offer.interface):
                raise BadOffer("it wants another interface in a context that it has")
            if any(transfer != NDR for transfer in known):
                raise BadOffer("it wants to write otherwise in a context that it has")
        if self._found(offer.interface) not in self._interfaces:
            return _UNKNOWN_INTERFACE
        return _ACCEPTED if NDR in known else _UNKNOWN_TRANSFER

    def _found(self, wanted: Syntax) -> Syntax:
        """Return the interface of ours that serves an older minor version, too."""
        for ours in self._interfaces:
            if (ours.uuid, ours.major) == (wanted.uuid, wanted.major):
                return ours if wanted.minor <= ours.minor else wanted
        return wanted

    def _has_room(self, context: int) -> bool:
        return context in self._contexts or len(self._contexts) < RPC_CONTEXTS_MAX_COUNT
