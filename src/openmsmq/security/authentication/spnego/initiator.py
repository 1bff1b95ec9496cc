"""The side of SPNEGO that calls: it offers mechanisms, and hopes that the first is taken."""

from __future__ import annotations

from openmsmq.security.authentication.ports import AuthenticationFailed, Step
from openmsmq.security.authentication.spnego.mechanism import Negotiation
from openmsmq.security.authentication.spnego.offer import Mechanism, MechanismContext
from openmsmq.security.authentication.spnego.tokens import (
    NegotiationState,
    ResponseToken,
    decode_response,
    encode_init,
    encode_mechanisms,
    encode_response,
)


class SpnegoInitiator(Negotiation):
    """One negotiation on the side of the client."""

    def __init__(self, mechanisms: tuple[Mechanism, ...]) -> None:
        super().__init__(mechanisms)
        self._list = encode_mechanisms(
            tuple(identifier for each in mechanisms for identifier in each.identifiers)
        )
        self._first = mechanisms[0]
        self._wants_mic = False
        self._is_chosen = False
        self._is_proved = False
        self._has_signed = False

    def _next(self, token: bytes) -> Step:
        if self._chosen is None:
            if token:
                raise AuthenticationFailed("a client begins")
            self._chosen = self._first.begin()
            step = self._chosen.step(b"")
            self._is_proved = step.is_complete
            return Step(encode_init(self._list, step.token), is_complete=False)
        said = decode_response(token)
        if said.state is NegotiationState.REJECTED:
            raise AuthenticationFailed("the server takes none of the mechanisms")
        if said.state is NegotiationState.WANTS_MIC:
            self._wants_mic = True
        chosen = self._chosen if self._is_chosen else self._choose(self._chosen, said)
        return self._go_on(chosen, said)

    def _choose(self, chosen: MechanismContext, said: ResponseToken) -> MechanismContext:
        self._is_chosen = True
        if said.mechanism is None or said.mechanism in self._first.identifiers:
            # Which of its names the server likes makes no difference to a mechanism.
            return chosen
        mechanism = self._find(said.mechanism)
        if mechanism is None:
            raise AuthenticationFailed("the server takes a mechanism that was not offered")
        self._wants_mic = True
        self._is_proved = False
        self._chosen = mechanism.begin()
        return self._chosen

    def _go_on(self, chosen: MechanismContext, said: ResponseToken) -> Step:
        answer: bytes | None = None
        if not self._is_proved:
            step = chosen.step(said.token or b"")
            answer = step.token or None
            self._is_proved = step.is_complete
            if not step.is_complete:
                return Step(encode_response(ResponseToken(token=answer)), is_complete=False)
        mic = None
        if not self._has_signed and (self._wants_mic or chosen.asks_for_mic):
            mic = chosen.sign_list(self._list)
            self._has_signed = True
        if said.mic is not None:
            chosen.check_list(self._list, said.mic)
        is_complete = said.state is NegotiationState.COMPLETED
        if is_complete and self._has_signed:
            if said.mic is None or mic is not None:
                raise AuthenticationFailed("the server has not signed the list of mechanisms")
            chosen.lists_are_signed()
        if answer is None and mic is None:
            if not is_complete:
                raise AuthenticationFailed("the server waits for something, and so do we")
            return Step(b"", is_complete=True)
        return Step(encode_response(ResponseToken(token=answer, mic=mic)), is_complete=False)
