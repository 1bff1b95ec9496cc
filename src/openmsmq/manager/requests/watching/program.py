"""What operators ask the program around the queue manager: the driver answers."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.api.program import LOG_LEVEL_MAX_S, LOG_LEVELS
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.outputs import AskProgram, Output
from openmsmq.manager.queues.connections import Connection
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InvalidParameter


class ProgramRequests:
    """Passes on what a queue manager cannot know, once it is clear that the caller may ask."""

    def __init__(self, outputs: list[Output]) -> None:
        self._outputs = outputs

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.GetConfiguration, self.pass_on)
        handlers.add(api.Reload, self.pass_on)
        handlers.add(api.SetLogLevel, self.set_log_level)

    def set_log_level(
        self, state: Connection, call: int, request: api.SetLogLevel, now: Instant
    ) -> None:
        """Have another level logged."""
        if request.level not in LOG_LEVELS:
            raise InvalidParameter(f"{request.level!r} is none of {', '.join(LOG_LEVELS)}")
        if not 0 <= request.for_s <= LOG_LEVEL_MAX_S:
            raise InvalidParameter(f"{request.for_s} s; from 0 to {LOG_LEVEL_MAX_S}")
        self.pass_on(state, call, request, now)

    def pass_on(
        self,
        state: Connection,
        call: int,
        request: api.GetConfiguration | api.Reload | api.SetLogLevel,
        _: Instant,
    ) -> None:
        """Have the program answer."""
        self._outputs.append(AskProgram(state.id, call, request))
