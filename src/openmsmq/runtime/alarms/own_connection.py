"""A connection of the program to the queue manager that it runs, for a message into a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from openmsmq.api import messages as api
from openmsmq.client.errors import ConnectionLost
from openmsmq.client.formatters.plain import JsonFormatter
from openmsmq.client.messages.outgoing import PacketBuilder, SendOptions
from openmsmq.client.steps import Steps, ask
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.queue import AccessMode, ShareMode
from openmsmq.runtime.alarms.lanes import NotTold
from openmsmq.runtime.alarms.notices import AlarmNotice
from openmsmq.runtime.server import Pump
from openmsmq.security.access.callers import UNLIMITED


class OwnConnection:
    """Carries out steps of a client, without a socket."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._answer: asyncio.Future[api.AnyReply] | None = None

    async def run(self, steps: Steps[None]) -> None:
        """Carry steps out, one request after the other; raise what the queue manager refuses."""
        number = self._pump.connected(self, UNLIMITED)
        try:
            request = next(steps)
            for call in range(1, 1 << 16):
                assert isinstance(request, api.Request)
                request = steps.send(await self._ask(number, call, request))
        except StopIteration:
            return
        finally:
            self._pump.disconnected(number)

    async def _ask(self, number: int, call: int, request: api.AnyRequest) -> api.AnyReply:
        if self._pump.refusal is not None:
            raise self._pump.refusal
        self._answer = asyncio.get_running_loop().create_future()
        self._pump.hand_in(lambda now: self._pump.request(number, call, request, now))
        self._pump.schedule()
        return await self._answer

    def deliver(self, answers: Iterable[api.Answer]) -> None:
        """Take the answer to the request that is under way."""
        for answer in answers:
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(answer.reply)

    def cut(self, reason: str) -> None:
        """End what is under way, because somebody wants the connection closed."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionLost(reason))

    def go_on(self) -> None:
        """Nothing was put off."""


async def send_notice(pump: Pump, queue: str, notice: AlarmNotice) -> None:
    """Send a notice to a queue of this queue manager, or raise `NotTold`."""
    try:
        await OwnConnection(pump).run(_sending(queue, notice))
    except (MsmqError, ConnectionLost) as error:
        raise NotTold(str(error)) from None


def _sending(queue: str, notice: AlarmNotice) -> Steps[None]:
    opened = yield from ask(api.OpenQueue(queue, AccessMode.SEND, ShareMode.DENY_NONE))
    builder = PacketBuilder(
        opened.direct_name, notice.manager, opened.format_name, Guid(opened.owner)
    )
    options: SendOptions = {"label": f"alarm {notice.alarm} {notice.state}", "recoverable": True}
    packet = builder.build_with(notice, options, JsonFormatter(), opened.transactional)
    transaction = api.OWN_TRANSACTION if opened.transactional else 0
    yield from ask(api.Send(opened.handle, [packet], transaction))
