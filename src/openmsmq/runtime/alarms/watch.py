"""Looks again and again whether an alarm is to be raised, and has told what there is to tell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.model.clock import Instant
from openmsmq.runtime.alarms.judging import Change, ChangeKind, Judge
from openmsmq.runtime.alarms.lanes import Lane, Send
from openmsmq.runtime.alarms.measuring import Measuring
from openmsmq.runtime.alarms.notices import AlarmNotice, notice_of, sentence
from openmsmq.runtime.alarms.own_connection import send_notice
from openmsmq.runtime.alarms.webhook import post
from openmsmq.runtime.clocks import elapsed_ns, read_clocks
from openmsmq.runtime.config.alarm_table import AlarmTable, without_secrets
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.server import Pump

FIRST_LOOK_S: Final = 1.0
"""How soon after the start, or after a reload, is looked for the first time."""

TIME_MAX_PERCENT: Final = 2
"""Part of the time that looks may take: with very many queues they become rarer."""

_EVENTS: Final = {
    ChangeKind.RAISED: Event.ALARM_RAISED,
    ChangeKind.REMINDED: Event.ALARM_REMINDED,
    ChangeKind.CLEARED: Event.ALARM_CLEARED,
}


class AlarmWatch:
    """All alarms of a queue manager."""

    def __init__(
        self, pump: Pump, manager: tuple[str, str], log: EventLog, told: Callable[[], None]
    ) -> None:
        self._pump = pump
        self._manager = manager
        self._log = log
        self._told = told
        """Hears that an alarm was raised or cleared."""
        self._measuring = Measuring(pump.engine, pump.vitals)
        self._judges: list[Judge] = []
        self._look_s = 0
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._retired: list[Lane] = []
        """Those to places that no alarm names any more, until they have told the last."""
        self._task: asyncio.Task[None] | None = None

    @property
    def raised_names(self) -> list[str]:
        """The alarms that are raised."""
        return [judge.rule.name for judge in self._judges if judge.raised]

    def configure(self, table: AlarmTable) -> None:
        """Watch these alarms from now on; those that stay as they were go on as they are."""
        before = {judge.rule: judge for judge in self._judges}
        self._judges = [before.pop(rule, Judge(rule)) for rule in table.rules]
        self._look_s = table.look_s
        now_s = read_clocks().unix_s
        for judge in before.values():
            for queue, raised in judge.raised.items():
                gone = Change(ChangeKind.CLEARED, judge.rule, queue, raised.value, raised.since_s)
                self._tell(gone, "it is not configured any more", now_s)
        self._retire_lanes(table)
        self._show()
        if self._task is not None:
            self._task.cancel()
        self._task = None
        if self._judges:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Look no more, and tell nobody."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.gather(*(lane.close() for lane in (*self._lanes.values(), *self._retired)))

    async def _run(self) -> None:
        pause_s = FIRST_LOOK_S
        while True:
            await asyncio.sleep(pause_s)
            took_ns = 0
            for judge in self._judges:
                began_ns = elapsed_ns()
                self._pump.hand_in(self._look, judge)
                took_ns += elapsed_ns() - began_ns
                # Whoever waits for the queue manager comes before the next alarm.
                await asyncio.sleep(0)
            self._show()
            pause_s = max(self._look_s, took_ns / 1e9 * (100 / TIME_MAX_PERCENT))

    def _look(self, judge: Judge, now: Instant) -> None:
        look = self._measuring.look(judge.rule, now)
        if look is None:
            return
        for change in judge.take(look, now):
            reason = ""
            if change.kind is not ChangeKind.CLEARED:
                reason = self._measuring.reason(change.rule, change.queue, now)
            self._tell(
                change, sentence(change.rule, change.queue, change.value, reason), now.unix_s
            )

    def _tell(self, change: Change, text: str, now_s: int) -> None:
        rule = change.rule
        say = self._log.info if change.kind is ChangeKind.CLEARED else self._log.warning
        facts = {"queue": change.queue} if change.queue else {}
        say(
            _EVENTS[change.kind],
            alarm=rule.name,
            **facts,
            value=change.value,
            threshold=rule.threshold,
            reason=text,
        )
        notice = notice_of(change, text, manager=self._manager, now_s=now_s)
        if rule.webhook:
            self._lane("webhook", rule.webhook).put(notice)
        if rule.queue:
            self._lane("queue", rule.queue).put(notice)
        self._show()
        self._told()

    def _retire_lanes(self, table: AlarmTable) -> None:
        named = {("webhook", rule.webhook) for rule in table.rules}
        named |= {("queue", rule.queue) for rule in table.rules}
        self._retired = [lane for lane in self._retired if not lane.is_over]
        for key in [key for key in self._lanes if key not in named]:
            lane = self._lanes.pop(key)
            lane.retire()
            self._retired.append(lane)

    def _lane(self, kind: str, address: str) -> Lane:
        """Return the way to a place."""
        found = self._lanes.get((kind, address))
        if found is None:
            place = without_secrets(address) if kind == "webhook" else address
            found = Lane(place, self._sender(kind, address), self._log)
            self._lanes[kind, address] = found
        return found

    def _sender(self, kind: str, address: str) -> Send:
        async def tell_webhook(notice: AlarmNotice) -> None:
            await post(address, msgspec.json.encode(notice))

        async def tell_queue(notice: AlarmNotice) -> None:
            await send_notice(self._pump, address, notice)

        return tell_webhook if kind == "webhook" else tell_queue

    def _show(self) -> None:
        """Tell the queue manager, which tells whoever asks how it is."""
        self._pump.engine.admin.take_alarms(
            [
                api.AlarmStatus(
                    name=judge.rule.name,
                    measure=judge.rule.measure.value,
                    threshold=judge.rule.threshold,
                    raised_count=len(judge.raised),
                    raised=[
                        api.RaisedAlarm(
                            queue,
                            raised.value,
                            raised.since_s,
                            sentence(judge.rule, queue, raised.value),
                        )
                        for queue, raised in judge.raised.items()
                    ],
                )
                for judge in self._judges
            ]
        )
