"""The side of SPNEGO that is called: it takes the first mechanism of a client that it has.

Whoever sits between both sides could take the better mechanisms out of a client's list. So the
list is signed by both, whenever another than the first one was taken, and whenever a client of NTLM
signs its messages. [RFC 4178 5, MS-SPNG 3.3.5.1]
"""

from __future__ import annotations

from openmsmq.security.authentication.ports import AuthenticationFailed, Step
from openmsmq.security.authentication.spnego.mechanism import Negotiation
from openmsmq.security.authentication.spnego.offer import Mechanism, MechanismContext
from openmsmq.security.authentication.spnego.tokens import (
    NegotiationState,
    ResponseToken,
    decode_init,
    decode_response,
    encode_response,
)


class SpnegoAcceptor(Negotiation):
    """One negotiation on the side of the server."""

    def __init__(self, mechanisms: tuple[Mechanism, ...]) -> None:
        super().__init__(mechanisms)
        self._list = b""
        self._wants_mic = False
        self._is_proved = False

    def _next(self, token: bytes) -> Step:
        if self._chosen is None:
            return self._choose(token)
        said = decode_response(token)
        if said.state is NegotiationState.REJECTED:
            raise AuthenticationFailed("the client has given up")
        return self._go_on(self._chosen, said.token, said.mic)

    def _choose(self, token: bytes) -> Step:
        offered = decode_init(token)
        self._list = offered.mechanism_list
        for place, identifier in enumerate(offered.mechanisms):
            mechanism = self._find(identifier)
            if mechanism is None:
                continue
            self._chosen = mechanism.begin()
            if place == 0 and offered.token is not None:
                return self._go_on(self._chosen, offered.token, None, identifier)
            # The token of another mechanism is of no use. A first one without a token is asked for.
            self._wants_mic = place > 0
            wants = NegotiationState.WANTS_MIC if place else NegotiationState.INCOMPLETE
            return Step(encode_response(ResponseToken(wants, identifier)), is_complete=False)
        names = ", ".join(each.hex() for each in offered.mechanisms)
        raise AuthenticationFailed(f"the client offers no mechanism that is served here ({names})")

    def _go_on(
        self,
        chosen: MechanismContext,
        token: bytes | None,
        mic: bytes | None,
        identifier: bytes | None = None,
    ) -> Step:
        answer: bytes | None = None
        if not self._is_proved:
            if token is None:
                raise AuthenticationFailed("the client sends nothing of the mechanism")
            step = chosen.step(token)
            answer = step.token or None
            self._is_proved = step.is_complete
            if not step.is_complete:
                said = ResponseToken(NegotiationState.INCOMPLETE, identifier, answer)
                return Step(encode_response(said), is_complete=False)
        ours = self._sign(chosen, mic)
        said = ResponseToken(NegotiationState.COMPLETED, identifier, answer, ours)
        return Step(encode_response(said), is_complete=True)

    def _sign(self, chosen: MechanismContext, mic: bytes | None) -> bytes | None:
        """Check the client's MIC and return ours; None if none is wanted."""
        if mic is None:
            if self._wants_mic or chosen.asks_for_mic:
                raise AuthenticationFailed("the client has not signed its list of mechanisms")
            return None
        chosen.check_list(self._list, mic)
        ours = chosen.sign_list(self._list)
        chosen.lists_are_signed()
        return ours
