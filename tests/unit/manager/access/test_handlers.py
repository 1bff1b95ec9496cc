"""Every request has one who carries it out, or no queue manager is made."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.access.handlers import Handlers, all_handlers
from openmsmq.manager.queues.connections import Connection
from openmsmq.model.clock import Instant


def carry_out(_state: Connection, _call: int, _request: api.AnyRequest, _now: Instant) -> None:
    raise AssertionError("nobody asks here")


class Everybody:
    """Carries out everything that a connection leaves to the queue manager, but one request."""

    def __init__(self, but: type[api.AnyRequest] = api.Hello) -> None:
        self._but = but

    def serve(self, handlers: Handlers) -> None:
        for kind in api.REQUESTS:
            if kind not in (api.Hello, self._but):
                handlers.add(kind, carry_out)


def test_everything_but_the_greeting_is_carried_out() -> None:
    assert all_handlers([Everybody()]).keys() == set(api.REQUESTS) - {api.Hello}


def test_a_request_that_nobody_carries_out_is_named() -> None:
    with pytest.raises(ValueError, match=r"nobody carries out Purge$"):
        all_handlers([Everybody(but=api.Purge)])


def test_a_request_has_only_one_who_carries_it_out() -> None:
    with pytest.raises(ValueError, match="two methods carry out"):
        all_handlers([Everybody(), Everybody()])
