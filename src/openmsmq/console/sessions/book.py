"""All sessions, known by what the cookies of browsers say; and the link of the start.

A cookie is 256 random bits and says nothing. Here its hash is kept, so that how long a look-up
takes tells nobody anything about a cookie that is good.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from openmsmq.aio import connect
from openmsmq.client.settings import Settings
from openmsmq.console import limits
from openmsmq.console.sessions.session import Session

_SECRET_BYTES: Final = 32


class Full(Exception):
    """So many are signed in that nobody else can be."""


class SessionBook:
    """Who is signed in."""

    def __init__(
        self, own: Settings, clock: Callable[[], float], *, asks_others: bool = False
    ) -> None:
        self._own = own
        self._asks_others = asks_others
        self._clock = clock
        self._sessions: dict[bytes, Session] = {}
        self._key = secrets.token_bytes(_SECRET_BYTES)
        self._link: str | None = secrets.token_urlsafe(_SECRET_BYTES)
        self._link_made_s = clock()

    # Before somebody is signed in.

    @property
    def link(self) -> str | None:
        """The secret of the link that signs in as this process; None when it is used or old."""
        if self._clock() - self._link_made_s >= limits.LINK_MAX_S:
            self._link = None
        return self._link

    def is_link(self, shown: str) -> bool:
        """Whether somebody shows the secret of the link."""
        link = self.link
        return link is not None and hmac.compare_digest(link.encode(), shown.encode())

    @staticmethod
    def new_visitor() -> str:
        """Return the cookie of somebody who is not signed in, to whom a form is shown."""
        return secrets.token_urlsafe(_SECRET_BYTES)

    def visitor_token(self, visitor: str) -> str:
        """Return what the form for a visitor has in it."""
        return hmac.new(self._key, visitor.encode(), hashlib.sha256).hexdigest()

    # Signing in and out.

    async def sign_in(self, token: str) -> str:
        """Sign in who has a token of the queue manager; returns the cookie.

        Raises what the queue manager says about the token, or `Full`.
        """
        # Nothing of this process may vouch for somebody else: neither its token nor a certificate.
        settings = msgspec.structs.replace(self._own, token=token, certificate="", key="")
        return await self._begin(settings)

    async def sign_in_by_link(self) -> str:
        """Sign in who has the link, once, as the user of this process; returns the cookie."""
        # Before anything is waited for: two who come at the same moment are not both let in.
        link, self._link = self._link, None
        try:
            return await self._begin(self._own)
        except BaseException:
            # Who was not let in has not used it: the queue manager may answer in a moment.
            self._link = link
            raise

    async def _begin(self, settings: Settings) -> str:
        await self.end_old()
        async with connect(settings) as manager:
            caller = await manager.caller()
        identity = caller.name
        mine = [key for key, one in self._sessions.items() if one.identity == identity]
        if len(mine) >= limits.SESSIONS_OF_ONE_MAX_COUNT:
            await self._end(min(mine, key=lambda key: self._sessions[key].used_s))
        if len(self._sessions) >= limits.SESSIONS_MAX_COUNT:
            raise Full("So many people are signed in that nobody else can be: try again later.")
        cookie = secrets.token_urlsafe(_SECRET_BYTES)
        form_token = secrets.token_urlsafe(_SECRET_BYTES)
        session = Session(
            settings, identity, form_token, self._clock, asks_others=self._asks_others
        )
        self._sessions[_digest(cookie)] = session
        return cookie

    async def find(self, cookie: str, *, is_person: bool) -> Session | None:
        """Return the session of a cookie; with `is_person` somebody has done something in it."""
        key = _digest(cookie)
        session = self._sessions.get(key)
        if session is None:
            return None
        now_s = self._clock()
        if session.is_over(now_s):
            await self._end(key)
            return None
        if is_person:
            session.used_s = now_s
        return session

    async def sign_out(self, cookie: str) -> None:
        """End a session."""
        await self._end(_digest(cookie))

    async def end_old(self) -> None:
        """End the sessions whose time is up."""
        now_s = self._clock()
        for key in [key for key, one in self._sessions.items() if one.is_over(now_s)]:
            await self._end(key)

    async def close(self) -> None:
        """End all sessions."""
        for key in list(self._sessions):
            await self._end(key)

    def __len__(self) -> int:
        return len(self._sessions)

    async def _end(self, key: bytes) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            await session.close()


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()
