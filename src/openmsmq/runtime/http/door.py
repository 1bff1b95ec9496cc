"""HTTP of a queue manager as a whole: what comes in and what leaves, if that is wanted."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from openmsmq.model.peers import address_of
from openmsmq.protocol.posts import OutgoingPost, PostAnswer, PostFailure
from openmsmq.runtime.api.peers import Door
from openmsmq.runtime.http.clerks import DOOR, Clerks
from openmsmq.runtime.http.programs import Programs
from openmsmq.runtime.http.routes import Route
from openmsmq.runtime.http.sending.client import HttpClient
from openmsmq.runtime.http.server import HttpServer
from openmsmq.runtime.http.srmp import SrmpPosts
from openmsmq.security.access.callers import Caller, anonymous

if TYPE_CHECKING:
    from openmsmq.model.identity import Guid
    from openmsmq.runtime.api.server import ApiServer
    from openmsmq.runtime.config.file import ServerConfig
    from openmsmq.runtime.logs import EventLog
    from openmsmq.runtime.server import Pump

_SHOWN_ONLY = Door(DOOR, needs_token=True)
"""Nobody comes in here by the word of the kernel, or without a word."""


class HttpDoor:
    """What a server has of HTTP; without `[http]` nothing."""

    def __init__(
        self, config: ServerConfig, pump: Pump, log: EventLog, api: ApiServer, identifier: Guid
    ) -> None:
        self._config = config
        self._pump = pump
        self._api = api
        self._clerks = Clerks(pump, api.audit)
        self.server: HttpServer | None = None
        table = config.http
        self._srmp = SrmpPosts(pump, table.url_map())
        self._client = HttpClient(table, config.data, self)
        if not table.enabled:
            return
        routes: list[Route] = [self._srmp]
        if table.programs:
            manager = (config.manager_name, identifier)
            routes.append(Programs(manager, self._admit, self._clerks, self._denied))
        self.server = HttpServer(table, config.data, log, _own_hosts(config), routes)
        pump.vitals.http_answers = self.server.answers

    @property
    def endpoints(self) -> list[tuple[str, int]]:
        """Where others come in."""
        return [] if self.server is None else self.server.endpoints

    async def listen(self) -> None:
        """Let others in, or raise `StartError` or `ConfigError`."""
        if self.server is not None:
            await self.server.listen(self._config.http.address or self._config.address)

    def reload(self) -> None:
        """Read certificates again, or raise `ConfigError`; then the old ones count."""
        self._client.reload()
        if self.server is not None:
            self.server.reload()

    def stop_listening(self) -> None:
        """Let nobody in any more."""
        if self.server is not None:
            self.server.stop_listening()

    async def close(self) -> None:
        """End all connections, after they had a moment to take their answers."""
        if self.server is not None:
            await self.server.close()
        self._client.close()
        self._clerks.close()

    # What the pump wants.

    def post(self, post: OutgoingPost) -> None:
        """Send a post."""
        self._client.post(post)

    def answer(self, answer: PostAnswer) -> None:
        """Answer a post."""
        self._srmp.answer(answer)

    # What became of posts.

    def post_answered(self, call: int, status: int, body: bytes) -> None:  # noqa: ARG002
        """The other side has answered; what it says beside the status means nothing in SRMP."""
        self._pump.put_in(self._pump.engine.post_answered, call, status)

    def post_failed(self, call: int, failure: PostFailure, reason: str) -> None:
        """There is no answer."""
        self._pump.put_in(lambda now: self._pump.engine.post_failed(call, failure, now, reason))

    # Who comes.

    def _admit(self, token: str, certificate: bytes) -> Caller:
        caller, _ = self._api.admit(_SHOWN_ONLY, "", None, certificate or None, token)
        return caller

    def _denied(self, peer: str, reason: str) -> None:
        self._api.audit.denied(anonymous(peer), peer, DOOR, reason)


def _own_hosts(config: ServerConfig) -> list[str]:
    """Return the hosts that URLs may name: this computer by its names and addresses."""
    hosts = [config.manager_name, config.qualified_name, socket.gethostname()]
    for address in (config.address, config.http.address):
        found = address_of(address)
        if found is None or not found.is_unspecified:
            hosts.append(address)
    return [host for host in (*hosts, *config.also_known_as) if host]
