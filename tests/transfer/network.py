"""Queue managers that talk to each other, and a peer that a test plays itself.

Time stands still unless a test lets it pass; everything that can happen at once happens in `run`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from openmsmq.api import messages as api
from openmsmq.directory.rows import changes_in, row_of
from openmsmq.manager.config import DirectoryConfig, ManagerConfig, SecurityConfig
from openmsmq.manager.manager import QueueManager
from openmsmq.manager.notices import Notice
from openmsmq.manager.outputs import (
    AskDirectory,
    AskProgram,
    BackUp,
    ChangeDirectory,
    Connect,
    Disconnect,
    EndConnection,
    MakeKeys,
    Output,
    Persist,
    ReadAuditLog,
    Resolve,
    Respond,
    SendBytes,
    SendDatagram,
)
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InsufficientResources, MsmqError, NoDirectory
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import PING_PORT
from openmsmq.model.names import PrivateFormatName, PublicFormatName, parse_format_name
from openmsmq.model.peers import PeerPolicy, PeerRule
from openmsmq.model.queue import AccessMode, ConnectionStatus
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.posts import OutgoingPost, PostAnswer
from openmsmq.security.own_key import OwnKey
from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.port import StoreFull
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateOnDestination,
    PublicName,
    QueueName,
)
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
    decode,
    encode,
)
from tests.strategies.messages import Draft

START_S = 1_700_000_000
STEPS_MAX_COUNT = 100_000

NO_DIRECTORY = DirectoryConfig()

ALPHA, BETA, GAMMA, PEER = "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.9"

PEER_IDENTIFIER = Guid(bytes([0xAB]) * 16)


def neighbour_identifier(address: str) -> Guid:
    """Who a `Neighbour` at an address says it is."""
    return Guid(address.encode().ljust(16, b"-")[:16])


KNOWN_PEER = PeerPolicy(
    rules=(
        PeerRule(
            name="peer",
            identifiers=(PEER_IDENTIFIER, neighbour_identifier(PEER)),
            addresses=(PEER,),
        ),
    )
)
"""The queue manager that a test plays is known to be at its address: so a session that it has
opened leads to its listener, too."""

ROUTING_PEER = PeerPolicy(rules=tuple(replace(rule, routes=True) for rule in KNOWN_PEER.rules))
"""The same, and it may bring messages of others."""


class Network:
    """Computers by address, connections between them, and one clock."""

    def __init__(self) -> None:
        self.now = Instant(0, START_S)
        self.hosts: dict[str, tuple[str, ...]] = {}
        self.computers: dict[str, Computer | Peer] = {}
        self.directory: Computer | None = None
        """Who has the original of the directory; None while it cannot be reached."""
        self.directory_questions = 0
        self.down: set[str] = set()
        """Addresses nobody can connect to."""
        self.may_connect: Callable[[str, str], bool] = lambda _source, _target: True
        """Says who can connect to whom."""
        self.datagrams: list[tuple[str, str, bytes]] = []
        """Who sent a datagram to whom, and what."""
        self._ends: dict[tuple[str, int], tuple[str, int]] = {}
        self._events: deque[Callable[[], None]] = deque()
        self._closing: set[tuple[str, int]] = set()
        """Ends to which the last bytes, and the news that they are the last, are on their way."""
        self._last_session = 0

    def manager(
        self, name: str, address: str, directory: DirectoryConfig = NO_DIRECTORY, **transfer: Any
    ) -> Computer:
        """Start a queue manager."""
        security = transfer.pop("security", SecurityConfig())
        keys = transfer.pop("keys", ())
        quota_kb = transfer.pop("quota_kb", 0)
        computer = Computer(
            self, name, address, TransferConfig(**transfer), directory, security, keys, quota_kb
        )
        self.computers[address] = computer
        return computer

    def peer(self, address: str = PEER) -> Peer:
        """Be a queue manager oneself."""
        peer = Peer(self, address)
        self.computers[address] = peer
        return peer

    def run(self, ms: int = 0) -> None:
        """Let everything happen that is due within so many milliseconds."""
        end_ms = self.now.ticks_ms + ms
        for _ in range(STEPS_MAX_COUNT):
            if self._events:
                self._events.popleft()()
                continue
            due = [
                (due_ms, computer)
                for computer in self.computers.values()
                if isinstance(computer, Computer)
                and (due_ms := computer.manager.next_wake_ms(self.now)) is not None
                and due_ms <= end_ms
            ]
            if not due:
                self.advance_to(end_ms)
                return
            self.advance_to(max(min(due_ms for due_ms, _ in due), self.now.ticks_ms))
            for due_ms, computer in due:
                if due_ms <= self.now.ticks_ms:
                    computer.manager.wake(self.now)
                    computer.pump()
        raise AssertionError("the network never comes to rest")

    def step(self, count: int) -> None:
        """Let so much happen of what is under way, and no more."""
        for _ in range(count):
            if self._events:
                self._events.popleft()()

    def advance_to(self, ticks_ms: int) -> None:
        """Set both clocks on."""
        passed_ms = ticks_ms - self.now.ticks_ms
        self.now = Instant(
            ticks_ms, self.now.unix_s + (self.now.ticks_ms % 1000 + passed_ms) // 1000
        )

    def connect(self, source: str, session: int, address: str) -> None:
        """Open a connection, or tell that it cannot be."""
        target = self.computers.get(address)
        if target is None or address in self.down or not self.may_connect(source, address):
            self._fail_later(source, session)
            return
        self._last_session += 2
        other = self._last_session
        self._ends[source, session] = address, other
        self._ends[address, other] = source, session

        def connected() -> None:
            if self._ends.get((source, session)) == (address, other):
                target.accepted(other, source)
                self.computers[source].connected(session)

        self._events.append(connected)

    def send(self, source: str, session: int, data: bytes) -> None:
        """Carry bytes to the other end."""
        end = self._ends.get((source, session))
        if end is None:
            return

        def arrive() -> None:
            # What was under way when a computer crashed does not reach its next life.
            if end in self._ends or end in self._closing:
                self.computers[end[0]].data(end[1], data)

        self._events.append(arrive)

    def disconnect(self, source: str, session: int) -> None:
        """Close a connection; the other end hears of it."""
        end = self._ends.pop((source, session), None)
        if end is None or self._ends.pop(end, None) is None:
            return
        self._closing.add(end)

        def arrive() -> None:
            if end in self._closing:
                self._closing.remove(end)
                self.computers[end[0]].lost(end[1])

        self._events.append(arrive)

    def cut(self, address: str) -> None:
        """Lose all connections of a computer; both ends hear of it."""
        for end in self.forget(address):
            self.computers[end[0]].lost(end[1])

    def forget(self, address: str, *, silently: bool = False) -> list[tuple[str, int]]:
        """Drop all connections of a computer; gives the ends that are to hear of it."""
        ends: list[tuple[str, int]] = []
        for own, other in list(self._ends.items()):
            if own[0] == address and own in self._ends:
                del self._ends[own]
                self._ends.pop(other, None)
                ends += [other] if silently else [own, other]
        self._closing = {end for end in self._closing if end[0] != address}
        return ends

    def datagram(self, source: str, output: SendDatagram) -> None:
        """Carry a datagram: a question to the ping port, or an answer to where it came from."""
        self.datagrams.append((source, output.address, output.data))
        target = self.computers.get(output.address)
        if isinstance(target, Computer) and output.address not in self.down:
            answer = output.port is not None

            def arrive() -> None:
                target.manager.datagram_received(
                    source, PING_PORT, output.data, self.now, is_answer=answer
                )
                target.pump()

            self._events.append(arrive)

    def resolve(self, computer: Computer, host: str) -> None:
        """Look a host up."""
        addresses = self.hosts.get(host.lower(), ())

        manager = computer.manager

        def answer() -> None:
            if computer.manager is manager:
                manager.host_resolved(host, addresses, self.now)
                computer.pump()

        self._events.append(answer)

    def ask_directory(self, computer: Computer, output: AskDirectory) -> None:
        """Carry a question to the directory, and the answer back."""
        manager = computer.manager
        self.directory_questions += 1

        def answer() -> None:
            original = self.directory
            if computer.manager is not manager:
                return
            if original is None:
                manager.directory_failed(NoDirectory("nobody answers"), self.now)
            else:
                told = original.manager.directory.copy.since(output.position)
                manager.directory_told(told, self.now)
            computer.pump()

        self._events.append(answer)

    def change_directory(self, computer: Computer, output: ChangeDirectory) -> None:
        """Have the directory changed."""
        manager, ticket = computer.manager, output.ticket

        def answer() -> None:
            original = self.directory
            if computer.manager is not manager:
                return
            rows = [row_of(change) for change in output.changes]
            reply = None if original is None else original.ask(api.ChangeDirectory(rows))
            if isinstance(reply, api.DirectoryChanged):
                manager.directory_changed(ticket, changes_in(reply.rows), self.now)
            else:
                error: MsmqError = NoDirectory("nobody answers")
                if isinstance(reply, api.Failed):
                    error = MsmqError.from_code(reply.code, reply.detail)
                manager.directory_refused(ticket, error, self.now)
            computer.pump()

        self._events.append(answer)

    def _fail_later(self, source: str, session: int) -> None:
        computer = self.computers[source]
        assert isinstance(computer, Computer)
        manager = computer.manager

        def fail() -> None:
            if computer.manager is manager:
                manager.session_failed(session, ConnectionStatus.SOCKET_CONNECT_FAILURE, self.now)
                computer.pump()

        self._events.append(fail)


class Computer:
    """A queue manager, its store and one application."""

    def __init__(
        self,
        network: Network,
        name: str,
        address: str,
        transfer: TransferConfig,
        directory: DirectoryConfig,
        security: SecurityConfig,
        keys: Sequence[OwnKey],
        quota_kb: int,
    ) -> None:
        self.network = network
        self.name = name
        self.address = address
        self.store = MemoryStore()
        self.config = ManagerConfig(
            name=name,
            addresses=(address,),
            transfer=transfer,
            directory=directory,
            security=security,
            quota_kb=quota_kb,
        )
        self.keys = list(keys)
        """Its key pairs, as their files would have them."""
        self.new_keys: Callable[[], list[OwnKey]] = list
        """Makes the next ones."""
        self.fail_commits = 0
        """So many commits from now on find the disk full."""
        self.proven: dict[str, str] = {}
        """Rules whose certificates those show who connect from an address."""
        self.notices: list[Notice] = []
        self.backups: list[BackUp] = []
        """What its operator should hear of."""
        self.questions: list[AskProgram] = []
        self.posts: list[OutgoingPost | PostAnswer] = []
        """What it has posted and answered; nobody carries that."""
        self.sent: list[bytes] = []
        """All bytes that went to other queue managers."""
        self._starts = 0
        self._calls = 0
        self.answers: dict[int, api.AnyReply] = {}
        self.start()

    def start(self) -> None:
        """Start from what the store has."""
        self._starts += 1
        rng = random.Random(f"{self.name} {self._starts}")
        self.manager = QueueManager(self.config, rng, self.store, self.network.now, self.keys)
        self.manager.connected(1)
        self.pump()

    def crash(self) -> None:
        """Lose power and start again; the others notice that their connections are gone."""
        self.store = self.store.crash()
        for address, session in self.network.forget(self.address, silently=True):
            self.network.computers[address].lost(session)
        self.start()

    @property
    def identifier(self) -> Guid:
        """Who it is."""
        return self.manager.identifier

    # Events of the network.

    def accepted(self, session: int, address: str) -> None:
        """Somebody connected."""
        proven = self.proven.get(address, "")
        self.manager.session_accepted(session, address, self.network.now, proven)
        self.pump()

    def connected(self, session: int) -> None:
        """A connection is there."""
        self.manager.session_connected(session, self.network.now)
        self.pump()

    def data(self, session: int, data: bytes) -> None:
        """Bytes came."""
        self.manager.session_data(session, data, self.network.now)
        self.pump()

    def lost(self, session: int) -> None:
        """A connection is gone."""
        self.manager.session_lost(session, self.network.now)
        self.pump()

    def pump(self) -> None:
        """Carry out all outputs."""
        while outputs := self.manager.take_outputs():
            for output in outputs:
                if isinstance(output, Notice):
                    self.notices.append(output)
                else:
                    self._carry_out(output)

    def _carry_out(self, output: Output) -> None:
        network = self.network
        match output:
            case Persist():
                self._commit(output)
            case Respond(_, call, reply):
                self.answers[call] = reply
            case Resolve(host):
                network.resolve(self, host)
            case Connect(session, address):
                network.connect(self.address, session, address)
            case SendBytes(session, data):
                self.sent.append(data)
                network.send(self.address, session, data)
            case Disconnect(session):
                network.disconnect(self.address, session)
            case SendDatagram():
                network.datagram(self.address, output)
            case AskDirectory():
                network.ask_directory(self, output)
            case ChangeDirectory():
                network.change_directory(self, output)
            case _:
                self._carry_out_rarer(output)

    def _carry_out_rarer(self, output: Output) -> None:
        match output:
            case Notice():
                self.notices.append(output)
            case OutgoingPost() | PostAnswer():
                self.posts.append(output)
            case EndConnection(connection):
                self.manager.connection_lost(connection, self.network.now)
            case BackUp():
                self.backups.append(output)
            case AskProgram():
                self.questions.append(output)
            case ReadAuditLog():
                self.manager.audit_told(output, api.AuditLines([], ""), self.network.now)
            case _:
                assert isinstance(output, MakeKeys)
                self._make_keys()

    def _make_keys(self) -> None:
        made = self.new_keys()
        self.keys += made
        if made:
            self.manager.keys_told(made, self.network.now)
        else:
            failure = InsufficientResources("the disk is full")
            self.manager.keys_told(failure, self.network.now)

    def _commit(self, persist: Persist) -> None:
        if self.fail_commits:
            self.fail_commits -= 1
            self.store.fail_next(StoreFull)
        try:
            self.store.commit(persist.batch)
        except StoreFull as error:
            failure = InsufficientResources(str(error))
            self.manager.persist_failed(persist.ticket, failure, self.network.now)
        else:
            self.manager.persisted(persist.ticket, self.network.now)

    # The application.

    def ask(self, request: api.AnyRequest) -> api.AnyReply | None:
        """Make a call; None while it has no answer."""
        self._calls += 1
        self.manager.request(1, self._calls, request, self.network.now)
        self.pump()
        return self.answers.get(self._calls)

    def ok(self, request: api.AnyRequest) -> Any:
        """Make a call that must succeed."""
        reply = self.ask(request)
        assert reply is not None
        assert not isinstance(reply, api.Failed), f"{reply.code:#x} {reply.detail}"
        return reply

    def soon(self, request: api.AnyRequest) -> api.AnyReply | None:
        """Make a call whose answer may need the network, but no time."""
        self.ask(request)
        call = self._calls
        self.network.run()
        return self.answers.get(call)

    def ok_soon(self, request: api.AnyRequest) -> Any:
        """Make such a call, which must succeed."""
        reply = self.soon(request)
        assert reply is not None
        assert not isinstance(reply, api.Failed), reply
        return reply

    def create(self, name: str, **properties: Any) -> None:
        """Create a queue."""
        self.ok(api.CreateQueue(name, **properties))

    def with_queues(self, plain: str, transactional: str) -> Computer:
        """Create a queue of each kind; gives itself."""
        self.create(plain)
        self.create(transactional, transactional=True)
        return self

    def send(
        self, name: str, *bodies: bytes, transactional: bool = False, **wishes: Any
    ) -> list[int]:
        """Send messages to any queue; gives their numbers."""
        opened = self.ok(api.OpenQueue(name, AccessMode.SEND))
        packets = [
            addressed(Draft(body=body, transactional=transactional, **wishes).packet(), opened)
            for body in bodies
        ]
        own = api.OWN_TRANSACTION if transactional else 0
        numbers = self.ok(api.Send(opened.handle, packets, own)).numbers
        self.ok(api.CloseQueue(opened.handle))
        return list(numbers)

    def messages(self, name: str, *, take: bool = False) -> list[UserMessage]:
        """Read all messages of a queue, and take them out if asked."""
        access = AccessMode.RECEIVE if take else AccessMode.PEEK
        opened = self.ok(api.OpenQueue(name, access))
        reply = self.ask(api.Receive(opened.handle, 10_000, 0, peek=not take))
        self.ok(api.CloseQueue(opened.handle))
        found: list[UserMessage] = []
        if isinstance(reply, api.Entries):
            for entry in reply.entries:
                packet = decode(entry.packet)
                assert isinstance(packet, UserMessage)
                found.append(packet)
        return found

    def bodies(self, name: str, *, take: bool = False) -> list[bytes]:
        """Read the bodies of all messages of a queue."""
        return [message.properties.body for message in self.messages(name, take=take)]

    def classes(self, name: str) -> list[int]:
        """Read the classes of all messages of a queue."""
        return [message.properties.message_class for message in self.messages(name)]

    def outgoing(self, name: str = "") -> list[api.OutgoingStatus]:
        """Look at the outgoing queues."""
        queues: list[api.OutgoingStatus] = self.ok(api.ListOutgoing(name)).queues
        return queues


def addressed(packet: bytes, opened: api.Opened) -> bytes:
    """Address a draft to the queue that was opened."""
    message = decode(packet)
    assert isinstance(message, UserMessage)
    header = message.user
    if "," in opened.format_name or opened.format_name.startswith("DL="):
        return packet
    if opened.direct_name:
        header = msgspec.structs.replace(header, destination=DirectName(opened.direct_name))
    else:
        name = parse_format_name(opened.format_name)
        destination: QueueName
        if isinstance(name, PublicFormatName):
            destination, manager = PublicName(name.queue), Guid(opened.owner)
        else:
            assert isinstance(name, PrivateFormatName)
            destination, manager = PrivateOnDestination(name.number), name.queue_manager
        header = msgspec.structs.replace(
            header, destination=destination, destination_manager=manager
        )
    return encode(msgspec.structs.replace(message, user=header))


class Peer:
    """A queue manager played by the test: it writes and reads packets itself."""

    def __init__(self, network: Network, address: str) -> None:
        self.network = network
        self.address = address
        self.identifier = PEER_IDENTIFIER
        self.packets: list[Packet] = []
        """What came since the test last looked."""
        self.is_open = False
        """Whether the connection used last is still there."""
        self.session = 0
        self._unread = bytearray()
        self._last_session = -1
        self.number = 0

    # Events of the network.

    def accepted(self, session: int, address: str) -> None:
        """A queue manager connected."""
        del address
        self.session, self.is_open, self._unread = session, True, bytearray()

    def connected(self, session: int) -> None:
        """Our connection is there."""
        self.session, self.is_open, self._unread = session, True, bytearray()

    def data(self, session: int, data: bytes) -> None:
        """Bytes came."""
        if session != self.session:
            return
        self._unread += data
        self.packets += map(decode, take_packets(self._unread))

    def lost(self, session: int) -> None:
        """The connection is gone."""
        if session == self.session:
            self.is_open = False

    # What a test does.

    def first_session(self, number: int) -> None:
        """Number the own sessions from here on."""
        self._last_session = number - 1

    def connect(self, address: str) -> None:
        """Open a connection to a queue manager."""
        self._last_session += 2
        self.network.connect(self.address, self._last_session, address)
        self.network.run()

    def write(self, *packets: Packet | bytes, at_a_time: int = 0) -> None:
        """Send packets, or any bytes, and let what follows happen."""
        data = b"".join(p if isinstance(p, bytes) else encode(p) for p in packets)
        size = at_a_time or len(data) or 1
        for start in range(0, len(data), size):
            self.network.send(self.address, self.session, data[start : start + size])
        self.network.run()

    def close(self) -> None:
        """Close the connection."""
        self.network.disconnect(self.address, self.session)
        self.is_open = False
        self.network.run()

    def take(self) -> list[Packet]:
        """Return what came since the last time."""
        packets, self.packets = self.packets, []
        return packets

    def user_messages(self) -> list[UserMessage]:
        """Return the user messages that came since the last time."""
        return [packet for packet in self.take() if isinstance(packet, UserMessage)]

    def acks(self) -> list[SessionHeader]:
        """Return the session headers that came, alone or on a message, since the last time."""
        carriers = [p for p in self.take() if isinstance(p, SessionAck | UserMessage)]
        return [packet.session for packet in carriers if packet.session is not None]

    def open_session(
        self, address: str, *, server: Guid = NIL_GUID, window: int = 64, ack_ms: int = 20_000
    ) -> list[Packet]:
        """Open a session as the initiator; gives the two answers."""
        self.connect(address)
        self.write(EstablishConnection(EstablishHeader(self.identifier, server)))
        self.write(ConnectionParameters(ParametersHeader(500, ack_ms, window)))
        return self.take()

    def accept_session(self, *, window: int = 64) -> list[Packet]:
        """Answer the two packets of a queue manager that has connected; gives them."""
        asked = self.take()
        (establish,) = (p for p in asked if isinstance(p, EstablishConnection))
        answer = msgspec.structs.replace(establish.establish, server=self.identifier)
        self.write(msgspec.structs.replace(establish, establish=answer))
        more = self.take()
        (parameters,) = (p for p in more if isinstance(p, ConnectionParameters))
        settled = msgspec.structs.replace(parameters.parameters, window=window)
        self.write(msgspec.structs.replace(parameters, parameters=settled))
        return [*asked, *more]
