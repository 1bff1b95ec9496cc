"""One person who is signed in: a connection to the queue manager, as that person.

What the person showed to come in, a token or nothing but being the user of this process, is in the
settings of the client, in memory, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable

from openmsmq.aio import QueueManager, connect
from openmsmq.client.settings import Settings
from openmsmq.console import limits


class Over(Exception):
    """The session has ended."""


class Session:
    """Who is signed in, since when, and the way to the queue manager."""

    def __init__(
        self,
        settings: Settings,
        identity: str,
        form_token: str,
        clock: Callable[[], float],
        *,
        asks_others: bool = False,
    ) -> None:
        self._settings = settings
        self.others = settings if asks_others else None
        """How other queue managers are asked as this person; None if they are not."""
        self._manager: QueueManager | None = None
        self.identity = identity
        """Whom the queue manager takes the person for."""
        self.form_token = form_token
        """What each form of this session has in it, so that nobody else can write one."""
        self._clock = clock
        self.began_s = self.used_s = clock()
        self._time: tuple[float, float] | None = None
        self._news: list[tuple[str, str]] = []
        self.has_ended = False
        """Whether it is over: what was begun in it before is not done any more."""

    async def manager(self) -> QueueManager:
        """Return the connection to the queue manager, which is made when it is first needed.

        Raises `Over` if the session has ended, which it may while somebody waits for it here.
        """
        if self.has_ended:
            raise Over
        if self._manager is None:
            opened = await connect(self._settings)
            if self.has_ended:
                await opened.close()
                raise Over
            if self._manager is None:
                self._manager = opened
            else:
                # Another page of the same person was quicker.
                await opened.close()
        return self._manager

    async def manager_time_s(self) -> float:
        """Return what the clock of the queue manager says, which is asked for now and then."""
        now_s = self._clock()
        if self._time is None or now_s - self._time[0] >= limits.TIME_KEPT_S:
            self._time = now_s, (await (await self.manager()).status()).now_s
        asked_s, said_s = self._time
        return said_s + now_s - asked_s

    def is_over(self, now_s: float) -> bool:
        """Whether it has lasted, or nobody has used it, for too long."""
        return (
            now_s - self.used_s >= limits.SESSION_IDLE_MAX_S
            or now_s - self.began_s >= limits.SESSION_MAX_S
        )

    def tell(self, kind: str, sentence: str) -> None:
        """Keep a sentence for the next page."""
        self._news = [*self._news, (kind, sentence)][-limits.NEWS_MAX_COUNT :]

    def take_news(self) -> list[tuple[str, str]]:
        """Return what there is to tell, once."""
        news, self._news = self._news, []
        return news

    async def close(self) -> None:
        """End the session, and its connection to the queue manager."""
        self.has_ended = True
        manager, self._manager = self._manager, None
        if manager is not None:
            await manager.close()
