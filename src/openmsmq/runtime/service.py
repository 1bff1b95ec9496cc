"""A queue manager from start to stop: the store, the core, the pump, the doors, the signals."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.manager import QueueManager
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.errors import ServiceNotAvailable
from openmsmq.model.identity import Guid
from openmsmq.model.peers import address_of
from openmsmq.model.topology import ManagerRole
from openmsmq.protocol.discovery.server import DiscoveryServer
from openmsmq.runtime.alarms.watch import AlarmWatch
from openmsmq.runtime.api.audit_pages import AuditReader
from openmsmq.runtime.api.connection import SOFTWARE
from openmsmq.runtime.api.server import ApiServer
from openmsmq.runtime.backups.keeper import BackupKeeper
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import ServerConfig, is_loopback
from openmsmq.runtime.config.loading import Loaded, loaded_by_program
from openmsmq.runtime.console_process import ConsoleProcess
from openmsmq.runtime.directory.courier import DirectoryCourier
from openmsmq.runtime.directory.discovery import DiscoveryListener
from openmsmq.runtime.directory.joining import Membership, directory_config
from openmsmq.runtime.http.door import HttpDoor
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.multicast.service import MulticastService
from openmsmq.runtime.operating.configuration import RunningConfiguration
from openmsmq.runtime.operating.log_level import LogLevels
from openmsmq.runtime.operating.program import Program
from openmsmq.runtime.operating_system.identity import (
    Identity,
    Leave,
    check_alone,
    check_directory,
    check_store_identity,
    keep_identity,
)
from openmsmq.runtime.operating_system.key_files import KeyFiles
from openmsmq.runtime.operating_system.key_maker import KeyMaker
from openmsmq.runtime.operating_system.supervisor import Supervisor
from openmsmq.runtime.rpc.elsewhere import Elsewhere
from openmsmq.runtime.rpc.offered import offered
from openmsmq.runtime.rpc.proofs import Proofs
from openmsmq.runtime.rpc.server import RpcServer
from openmsmq.runtime.server import ExitCode, Pump
from openmsmq.runtime.sessions.network import TransferNetwork
from openmsmq.runtime.sessions.taps import MakeTap, no_tap
from openmsmq.runtime.start_errors import NotYet, StartError
from openmsmq.runtime.telemetry.tracing import open_tracing
from openmsmq.runtime.turn_file import TurnFile
from openmsmq.security.own_key import KeptKey
from openmsmq.storage.backups.manifest import BackupOwner
from openmsmq.storage.engine import JournaledStore
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import (
    Store,
    StoreDamaged,
    StoreError,
)
from openmsmq.storage.records import MACHINE_KEY

if TYPE_CHECKING:
    from openmsmq.protocol.replication.log import Ended
    from openmsmq.runtime.replication.primary import Primary

START_ERRORS: Final = (StartError, ConfigError, StoreError)
"""What `Server.start` raises for what an operator can put right."""

_DATA_MODE: Final = 0o700


class Server:
    """A running queue manager. Made by `start`, over when `finished` returns."""

    def __init__(
        self,
        config: ServerConfig,
        store: Store,
        log: EventLog,
        membership: Membership,
        identifier: Guid | None,
        keys: Sequence[KeptKey] = (),
        *,
        loaded: Loaded | None = None,
    ) -> None:
        self.config = config
        self.supervisor = Supervisor({})
        """Whoever supervises the process: nobody, unless somebody says so."""
        self._store = store
        self._log = log
        self._ending: asyncio.Future[ExitCode] = asyncio.get_running_loop().create_future()
        # The constructor recovers, so this is where a store that cannot be used is noticed.
        with _understood(config):
            manager = QueueManager(
                manager_config(config, identifier),
                random.SystemRandom(),
                store,
                read_clocks(),
                keys,
                secrets.token_hex(8),
            )
        self.manager_name: Final = config.manager_name
        self.manager_id: Final[Guid] = manager.identifier
        self._turns: Final = manager.turns
        self._turn_file: TurnFile | None = None
        self._primary: Primary | None = None
        self._pump = Pump(manager, store, log, self._end)
        self._tracing = open_tracing(
            config.telemetry,
            (self.manager_name, str(self.manager_id)),
            lambda: manager.queues,
            log,
            asyncio.get_running_loop().call_later,
        )
        make_tap: MakeTap = no_tap
        if self._tracing is not None:
            self._pump.arrivals, make_tap = self._tracing.arrivals, self._tracing.make_tap
        self._network = self._pump.network = TransferNetwork(config, self._pump, log, make_tap)
        self._keys = self._pump.keys = KeyMaker(key_files(config), self._pump, log)
        owner = BackupOwner(self.manager_name, str(self.manager_id), SOFTWARE)
        self._backups = self._pump.backups = BackupKeeper(
            Path(config.data), owner, store, self._pump, log
        )
        self._pump.audit = AuditReader(config.audit_path, self._pump)
        self._elsewhere = self._pump.elsewhere = Elsewhere(config, self._pump, log)
        self._multicast = self._pump.multicast = MulticastService(
            config.multicast, self._pump, log, self.manager_id
        )
        self._pump.vitals.multicast = self._multicast.transport
        self._directory: DirectoryCourier | None = None
        if membership.port is not None:
            self._directory = DirectoryCourier(membership.port, self._pump, log)
            self._pump.directory = self._directory
        self._discovery: DiscoveryListener | None = None
        self._console = ConsoleProcess(config, log) if config.console else None
        self._answers = DiscoveryServer(
            manager.identifier,
            lambda: manager.directory.copy.image,
            strict_enterprise=config.parameters.strict_enterprise,
        )
        self._api = ApiServer(config, self._pump, log, manager_id=manager.identifier)
        self.http = self._pump.http = HttpDoor(
            config, self._pump, log, self._api, manager.identifier
        )
        self._rpc: RpcServer | None = None
        if config.rpc.enabled:
            services = offered(config, lambda: self.rpc_endpoints[0][1])
            self._rpc = RpcServer(config.rpc, self._pump, log, self._api.audit, services)
        self._configuration = RunningConfiguration(loaded or loaded_by_program(config))
        self._levels = LogLevels(log, config.log_level, asyncio.get_running_loop().call_later)
        self._alarms = AlarmWatch(
            self._pump,
            (self.manager_name, str(self.manager_id)),
            log,
            lambda: self.supervisor.status(self.status_text),
        )
        self._pump.program = Program(self._configuration, self._levels, self.reload)
        self.reloads: Final[list[tuple[str, Callable[[], None]]]] = [
            ("certificates and tokens of applications", self._api.reload),
            ("certificates of sessions", self._network.sessions.reload),
            ("certificates of HTTP", self.http.reload),
        ]
        """What `reload` reads again: what it is, and what does it or raises `ConfigError`."""

    @classmethod
    async def start(
        cls,
        config: ServerConfig,
        *,
        store: Store | None = None,
        log: EventLog | None = None,
        leave: Leave | None = None,
        thorough: bool = False,
        trace_turns: str | None = None,
        loaded: Loaded | None = None,
        primary: Primary | None = None,
    ) -> Server:
        """Start a queue manager; raises one of `START_ERRORS`, and then nothing is left open.

        `thorough` looks at every page of the store first. `trace_turns` is a file for developers.
        `loaded` says where the configuration comes from, and `primary` has the store of a queue
        manager on several computers.
        """
        if not __debug__:
            raise StartError(
                "openmsmq does not run under python -O: its assertions guard your messages"
            )
        log = log or EventLog(config.log_format, config.log_level)
        log.info(Event.STARTING, name=config.manager_name, data=config.data, software=SOFTWARE)
        own_store = store is None
        if store is None:
            store = (
                open_own_store(config, leave or Leave(), thorough=thorough)
                if primary is None
                else primary.store
            )
        with contextlib.ExitStack() as started:
            started.callback(store.close)
            membership = Membership(config)
            identifier = None
            if store.get(MACHINE_KEY) is None:
                identifier = await _chosen_identifier(config, membership, log)
            keys = await load_keys(config)
            server = cls(config, store, log, membership, identifier, keys, loaded=loaded)
            if trace_turns is not None:
                server._turn_file = TurnFile(trace_turns, server._turns, log)
                server._pump.turn_file = server._turn_file
                started.callback(server._turn_file.close)
            if server._tracing is not None:
                started.callback(server._tracing.spans.give_up)
            # Who this queue manager is must be durable before anybody hears of it.
            await server._begin_turns(primary)
            if store.get(MACHINE_KEY) is None:
                raise NotYet(f"{config.data} has no room for a new queue manager: free some")
            started.callback(server._network.give_up)
            started.callback(server._api.stop_listening)
            await server._api.listen()
            await server._network.listen()
            if server._rpc is not None:
                started.callback(server._rpc.stop_listening)
                await server._rpc.listen(config.rpc.address or config.address, Proofs(config, log))
            started.callback(server.http.stop_listening)
            await server.http.listen()
            started.callback(server._multicast.close)
            server._multicast.start()
            server._answer_discovery()
            if server._console is not None:
                server._console.start()
            if own_store:
                server._keep_watch(primary)
            server._alarms.configure(config.alarms)
            started.pop_all()
        return server

    def _keep_watch(self, primary: Primary | None) -> None:
        """Watch the disk, say whose the directory is, and look who follows."""
        self._pump.vitals.watch(self.config.store_path)
        identity = Identity(self.manager_name, str(self.manager_id))
        keep_identity(Path(self.config.data), identity)
        if primary is not None:
            # All files are there now; standbys compare theirs.
            primary.watch(self.config, self._pump.vitals)

    async def _begin_turns(self, primary: Primary | None) -> None:
        """Have the first turn, and wait until it is durable."""
        if primary is None:
            self._pump.turn()
            return
        primary.may_go_on, primary.ended = self._pump.schedule, self._end_tenure
        self._pump.primary = self._primary = primary
        self._backups.done = primary.backed_up
        self._pump.turn()
        await primary.settled()
        if primary.over is not None:
            # While it ran its hook, for example. Nobody was told yet that it serves.
            why = primary.over.why
            raise StartError(why) if primary.over.is_damage else NotYet(why)

    def _answer_discovery(self) -> None:
        """Let those who look for a directory find this one."""
        if self.config.directory_server and self.config.transfer:
            self._discovery = DiscoveryListener(
                self._network.sessions.hosts,
                self._answers.answer,
                self._log,
                port=self.config.session_port,
            )
            self._discovery.open()

    @property
    def tcp_endpoints(self) -> list[tuple[str, int]]:
        """The addresses and ports that applications connect to."""
        return self._api.tcp_endpoints

    @property
    def session_endpoints(self) -> list[tuple[str, int]]:
        """The addresses and ports that other queue managers connect to."""
        return self._network.sessions.endpoints

    @property
    def session_tls_endpoints(self) -> list[tuple[str, int]]:
        """Where they do so over TLS."""
        return self._network.sessions.tls_endpoints

    @property
    def rpc_endpoints(self) -> list[tuple[str, int]]:
        """Where programs on other computers call by RPC."""
        return [] if self._rpc is None else self._rpc.endpoints

    @property
    def socket_path(self) -> Path | None:
        """The Unix socket that applications connect to."""
        return self.config.socket_path

    @property
    def status_text(self) -> str:
        """How it is, in a sentence for whoever supervises it."""
        raised = self._alarms.raised_names
        alarms = f"; alarms: {', '.join(raised)}" if raised else ""
        return f"{self.manager_name} serves{alarms}"

    def reload(self) -> api.Reloaded:
        """Read again what can change while the server runs; what is wrong stays as it was."""
        self.supervisor.reloading()
        told = api.Reloaded([], [], [])
        parts: list[tuple[str, Callable[[], None]]] = [
            ("configuration", lambda: self._reconfigure(told)),
            *self.reloads,
        ]
        for what, read_again in parts:
            problem = ""
            try:
                read_again()
            except ConfigError as error:
                problem = str(error)
                self._log.error(Event.RELOAD_FAILED, what=what, reason=problem)
            else:
                self._log.info(Event.RELOADED, what=what)
            told.parts.append(api.ReloadedPart(what, problem))
        if told.waiting:
            self._log.warning(Event.RESTART_NEEDED, keys=", ".join(told.waiting))
        self.supervisor.ready(self.status_text)
        return told

    def _reconfigure(self, told: api.Reloaded) -> None:
        """Read the file again, and use what can be used without a restart."""
        changed, waiting = self._configuration.read_again()
        told.changed.extend(changed)
        told.waiting.extend(waiting)
        if "log_level" in changed:
            self._levels.configure(self._configuration.config.log_level)
        if any(key.startswith("alarms.") for key in changed):
            self._alarms.configure(self._configuration.config.alarms)

    def stop(self) -> None:
        """Begin to stop in order; `finished` returns when that is done."""
        self._end(ExitCode.STOPPED)

    async def _end_turns(self) -> None:
        """Have the last turns; then somebody else may take over."""
        if self._primary is None:
            self._pump.close()
            return
        await self._primary.settled_soon()
        self._pump.close()
        await self._primary.leave()

    def _end_tenure(self, ended: Ended) -> None:
        """End without a word: what is under way is known to whoever is the primary next."""
        say = self._log.error if ended.is_damage else self._log.warning
        say(Event.REPLICATION_ENDED, reason=ended.why)
        self._pump.fall_silent(ended.why)
        # Peers may be at another address by now, and would be waited for.
        self._network.sessions.cut_all()
        self._end(ExitCode.NOT_STARTED if ended.is_damage else ExitCode.NOT_YET)

    def _end(self, code: ExitCode) -> None:
        if not self._ending.done():
            self._ending.set_result(code)

    async def finished(self) -> ExitCode:
        """Wait for the end, by `stop` or by a failure, and bring it about."""
        code = await self._ending
        self._log.info(Event.STOPPING, status=int(code))
        self.supervisor.stopping()
        self._api.stop_listening()
        self._network.stop_listening()
        self.http.stop_listening()
        if self._rpc is not None:
            self._rpc.stop_listening()
        self._elsewhere.close()
        self._multicast.close()
        self._backups.stop()
        if self._discovery is not None:
            self._discovery.close()
        if self._console is not None:
            await self._console.close()
        if code in (ExitCode.STORE_FAILED, ExitCode.DEFECT):
            await asyncio.sleep(self.config.failure_grace_ms / 1000)
        self._pump.turn()
        if self._pump.refusal is None:
            self._pump.refusal = ServiceNotAvailable("the queue manager is stopping")
        if self._rpc is not None:
            await self._rpc.close()
        await asyncio.gather(self._api.close_connections(), self._network.close())
        await self.http.close()
        if self._directory is not None:
            await self._directory.close()
        await self._keys.close()
        await self._backups.close()
        await self._alarms.close()
        self._levels.close()
        await self._end_turns()
        if self._tracing is not None:
            await self._tracing.spans.close()
        if self._turn_file is not None:
            self._turn_file.close()
        self._store.close()
        self._log.info(Event.STOPPED, status=int(code))
        return code


def open_own_store(config: ServerConfig, leave: Leave, *, thorough: bool = False) -> JournaledStore:
    """Open the store of the data directory, if it is the one that belongs there."""
    data = Path(config.data)
    make_data_directory(data)
    check_directory(data, config.store_path, leave)
    store = open_store(
        config.store_path, checkpoint_bytes=config.checkpoint_bytes, thorough=thorough
    )
    with contextlib.ExitStack() as opened:
        opened.callback(store.close)
        with _understood(config):
            check_store_identity(data, store, config.manager_name, leave)
        if not config.replication.database:
            check_alone(data, store, leave)
        opened.pop_all()
    return store


@contextlib.contextmanager
def _understood(config: ServerConfig) -> Iterator[None]:
    """Say in a sentence that records which are whole cannot be read all the same."""
    try:
        yield
    except (msgspec.MsgspecError, struct.error, ValueError) as error:
        raise StoreDamaged(
            f"the store {config.store_path} has a record that this version of OpenMSMQ does not "
            f"understand ({error}): start the version that wrote it, or restore it from a backup"
        ) from error


def manager_config(config: ServerConfig, identifier: Guid | None = None) -> ManagerConfig:
    """Tell the queue manager who it is and what it may use."""
    return ManagerConfig(
        name=config.manager_name,
        addresses=tuple(dict.fromkeys([*_own_addresses(config.address), *config.also_known_as])),
        software=SOFTWARE,
        roles=tuple(roles_of(config)),
        quota_kb=config.quota_kb,
        journal_quota_kb=config.journal_quota_kb,
        express_memory_kb=config.express_memory_kb,
        directory=directory_config(config),
        identifier=identifier,
        transfer=config.parameters,
        security=config.security.config,
        reads_elsewhere=bool(config.rpc.remote_hosts),
        http=config.http.config,
    )


def roles_of(config: ServerConfig) -> Iterator[ManagerRole]:
    """Return what the doors of a server make of its queue manager. [MQOD 2.1.4.2]"""
    yield ManagerRole.QUEUE_SERVER
    if config.rpc.enabled:
        yield ManagerRole.MANAGEMENT_SERVER
    if config.api_tcp and not is_loopback(config.address):
        yield ManagerRole.SUPPORTING_SERVER
    if config.transfer:
        yield ManagerRole.MESSAGE_TRANSFER


async def _chosen_identifier(
    config: ServerConfig, membership: Membership, log: EventLog
) -> Guid | None:
    """Return who the directory says a new queue manager is; None if it may choose itself.

    [MQOD 2.7.4]
    """
    try:
        return await membership.identifier()
    except NotYet as error:
        if not config.start_without_directory:
            raise
        log.warning(Event.WITHOUT_DIRECTORY, reason=str(error))
        return None


def key_files(config: ServerConfig) -> KeyFiles:
    """Find the place of the keys, and which there should be."""
    security = config.security
    return KeyFiles(Path(config.data), security.providers, security.key_bits, config.manager_name)


async def load_keys(config: ServerConfig) -> list[KeptKey]:
    """Read the keys; make them for a queue manager that can publish them and has none yet."""
    files = key_files(config)
    if config.directory_role is DirectoryRole.NONE:
        return files.load()
    return await asyncio.to_thread(files.load_or_make, read_clocks().unix_s)


def _own_addresses(address: str) -> list[str]:
    """Return the names by which others may mean this queue manager.

    A loopback address is that one queue manager's, because several may share the computer; one
    that listens on every address is reached under the names of the computer, too.
    """
    found = address_of(address)
    if found is not None and found.is_unspecified:
        return [socket.gethostname(), "localhost", "127.0.0.1", "::1"]
    return [address] if is_loopback(address) else [address, socket.gethostname()]


def make_data_directory(path: Path) -> None:
    """Create the data directory for its owner alone; one that is there stays as it is."""
    try:
        path.mkdir(mode=_DATA_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"cannot create the data directory {path} ({error.strerror})") from None
