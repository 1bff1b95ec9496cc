"""Answers what the queue manager passes on because it is about the program around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from openmsmq.api import messages as api
from openmsmq.runtime.operating.configuration import RunningConfiguration
from openmsmq.runtime.operating.log_level import LogLevels


class Program:
    """The answers."""

    def __init__(
        self,
        configuration: RunningConfiguration,
        levels: LogLevels,
        reload: Callable[[], api.Reloaded],
    ) -> None:
        self._configuration = configuration
        self._levels = levels
        self._reload = reload

    def answer(self, request: api.GetConfiguration | api.Reload | api.SetLogLevel) -> api.AnyReply:
        """Answer a request that its caller may make."""
        match request:
            case api.GetConfiguration():
                return self._configuration.show(self._levels.level)
            case api.Reload():
                return self._reload()
            case api.SetLogLevel(level, for_s):
                return self._levels.set(level, for_s)
            case _:
                assert_never(request)
