"""Ways to other queue managers: over whom their messages go, and where those are. [MQBR]

What the configuration says comes first; what the directory says comes after it.
"""

from __future__ import annotations

from openmsmq.directory.image import DirectoryImage
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.turn.counters import Counters
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.identity import Guid
from openmsmq.model.limits import HOP_MAX_COUNT
from openmsmq.model.names import FormatName, PrivateFormatName, PublicFormatName
from openmsmq.model.names.parts import fold
from openmsmq.model.topology import QueueManagerInfo
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.link import Hop
from openmsmq.routing.next_hops import EXTRA_MAX_HOPS, Routes


class KnownWays:
    """Finds the next hops towards queues that are known by number or identifier."""

    def __init__(
        self,
        config: TransferConfig,
        copy: DirectoryCopy,
        counters: Counters,
        role: DirectoryRole,
    ) -> None:
        self._config = config
        self.copy = copy
        self._counters = counters
        self._role = role
        self._routes: Routes | None = None
        self._routes_of: DirectoryImage | None = None
        """The state of the directory that the routes are known to be those of."""
        self._peers: frozenset[str] = frozenset()
        self._peers_of: DirectoryImage | None = None
        """The state of the directory of whose queue managers those are the addresses."""

    @property
    def routes(self) -> Routes:
        """The routes by the present state of the directory."""
        image, before = self.copy.image, self._routes_of
        if image is before and self._routes is not None:
            return self._routes
        self._routes_of = image
        if self._routes is None or before is None or not image.routes_like(before):
            self._routes = Routes(
                self._counters.identifier,
                image.sites.values(),
                image.links.values(),
                image.managers.values(),
                route_on_direct_failure=self._config.route_on_direct_failure,
                route_around=self._config.route_around,
            )
        return self._routes

    # Messages that go round: somebody's copy of the directory is behind.

    @property
    def hops_expected_max(self) -> int:
        """So many hops no message makes whose way is the same for everybody.

        Of the hops that a message has altogether enough must be left for the right way.
        """
        return min(len(self.copy.image.sites) + EXTRA_MAX_HOPS, HOP_MAX_COUNT // 2)

    @property
    def may_be_behind(self) -> bool:
        """Whether messages of others pass here, by a directory that may have changed since."""
        own = self.copy.image.managers.get(self._counters.identifier)
        return own is not None and own.routing_server and not self.copy.is_original

    @property
    def may_learn(self) -> bool:
        """Whether there is a directory to ask that may know more than its copy here."""
        return self._role is DirectoryRole.COPY

    def doubt(self) -> int:
        """Have the directory asked; gives the question that has to be answered."""
        return self.copy.doubt()

    def is_answered(self, question: int) -> bool:
        """Whether the directory has answered a question, or a later one."""
        return self.copy.answer_number >= question

    # Who may route through us.

    def passes_on(self, to: Guid, *, for_strangers: bool) -> bool:
        """Whether messages of others for a queue manager may be passed on here.

        Where there is a directory that is for its routing servers, and for whom the configuration
        makes a way to it. Nobody else is believed by those to whom he would bring them: they would
        end his sessions because of it, and his own messages would wait behind those of anybody who
        wants that.
        """
        if self._role is DirectoryRole.NONE:
            return True
        own = self.copy.image.managers.get(self._counters.identifier)
        if own is not None and own.routing_server:
            return True
        return not for_strangers and str(to) in self._config.next_hops

    def is_peer(self, address: str, source: Guid) -> bool:
        """Whether a message may come from a computer of the enterprise, as far as can be told.

        That is one at an address that the directory has. Where it has none of the source, its word
        has to do.
        """
        image = self.copy.image
        if image is not self._peers_of:
            if self._peers_of is None or not image.routes_like(self._peers_of):
                managers = image.managers.values()
                self._peers = frozenset(at for manager in managers for at in manager.addresses)
            self._peers_of = image
        sender = image.managers.get(source)
        return address in self._peers or (sender is not None and not sender.addresses)

    # Whose queues they are, and how to get there.

    def owner_of(self, name: FormatName) -> Guid | None:
        """Return the queue manager of a queue; None if that is not known or does not matter."""
        if isinstance(name, PrivateFormatName):
            return name.queue_manager
        if isinstance(name, PublicFormatName):
            queue = self.copy.image.queues.get(name.queue)
            return None if queue is None else queue.manager
        return None

    def hops_towards(self, manager: Guid) -> tuple[Hop, ...]:
        """Return the computers to try in turn for the messages of a queue manager."""
        fixed = self._config.next_hops.get(str(manager))
        if fixed is not None:
            return tuple(map(Hop, fixed))
        managers = self.copy.image.managers
        if manager not in managers:
            return ()
        return tuple(
            Hop(host, hop)
            for hop in self.routes.next_hops(manager)
            for host in _hosts_of(managers[hop])
        )

    def hops_to_host(self, host: str) -> tuple[Hop, ...]:
        """Return where a computer is that an application names: as the directory says, or its name.

        What the configuration says of the name comes first, and the name service last.
        """
        named = self.copy.image.manager_named(host)
        if named is None or fold(host) in map(fold, self._config.hosts):
            return (Hop(host),)
        return (*map(Hop, named.addresses), Hop(host))


def _hosts_of(manager: QueueManagerInfo) -> tuple[str, ...]:
    """Return where a queue manager is, by its addresses or by its name."""
    return manager.addresses or (manager.qualified_computer_name or manager.computer_name,)
