"""The process of a queue manager: its event loop, its signals, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.loading import Loaded
from openmsmq.runtime.logs import Event, EventLog, LibraryLogHandler
from openmsmq.runtime.operating.event_loop import loop_factory, spare_the_collector
from openmsmq.runtime.operating_system.crash_file import CrashFile
from openmsmq.runtime.operating_system.identity import Leave
from openmsmq.runtime.operating_system.supervisor import Supervisor
from openmsmq.runtime.server import ExitCode
from openmsmq.runtime.service import Server, make_data_directory, open_own_store
from openmsmq.runtime.start_errors import NotYet, StartError
from openmsmq.storage.port import StoreFailed, StoreFull, StoreInUse

if TYPE_CHECKING:
    from openmsmq.runtime.replication.primary import Primary

_SIGNAL_STATUS: Final = 128


async def run(
    loaded: Loaded,
    *,
    ready: Callable[[Server], None],
    leave: Leave | None = None,
    trace_turns: str | None = None,
    standby: bool = False,
) -> ExitCode:
    """Run a queue manager until a signal stops it; a second one ends it at once. SIGHUP reloads."""
    config = loaded.config
    log = EventLog(config.log_format, config.log_level)
    supervisor = Supervisor(os.environ)
    handler = LibraryLogHandler(log)
    logging.getLogger().addHandler(handler)
    # Without this, a reload that comes too early would end the process.
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, lambda: None)
    crash = CrashFile(Path(config.data))
    try:
        make_data_directory(Path(config.data))
        crashed = crash.is_left()
        if crashed:
            log.warning(Event.CRASHED, file=str(crash.path), reason="every page is looked at")
        crash.open()
        primary = None
        if config.replication.database or standby:
            primary = await _until_primary(
                config, log, leave or Leave(), supervisor, thorough=crashed, standby=standby
            )
        server = await Server.start(
            config,
            log=log,
            leave=leave,
            thorough=crashed,
            trace_turns=trace_turns,
            loaded=loaded,
            primary=primary,
        )
        if crashed:
            crash.put_away()
        _obey_signals(server)
        spare_the_collector()
        ready(server)
        log.info(Event.READY, name=server.manager_name, id=str(server.manager_id))
        server.supervisor = supervisor
        supervisor.ready(server.status_text)
        supervisor.feed_watchdog(asyncio.get_running_loop().call_later)
        return await server.finished()
    finally:
        supervisor.close()
        crash.close()
        logging.getLogger().removeHandler(handler)


async def _until_primary(
    config: ServerConfig,
    log: EventLog,
    leave: Leave,
    supervisor: Supervisor,
    *,
    thorough: bool,
    standby: bool,
) -> Primary:
    """Be a standby until it is time to serve; a signal ends it."""
    try:
        from openmsmq.runtime.replication.joining import join, require_room_to_join
    except ModuleNotFoundError:
        raise StartError("[replication] needs psycopg: pip install 'openmsmq[database]'") from None
    require_room_to_join(config, leave)
    store = open_own_store(config, leave, thorough=thorough)
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "nobody runs this"
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)

    def follows(record: int) -> None:
        supervisor.ready(f"{config.manager_name} is a standby")
        # Whoever was told that we are ready waits for signs of life from then on.
        supervisor.feed_watchdog(loop.call_later)
        print(f"standby name={config.manager_name} record={record}", flush=True)

    try:
        return await join(config, store, log, creates=not standby, follows=follows)
    except BaseException:
        store.abandon()
        raise
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def exit_code_for(error: Exception) -> ExitCode:
    """Say with what status a server ends that could not start for one of `START_ERRORS`."""
    if isinstance(error, StoreFailed):
        return ExitCode.STORE_FAILED
    return (
        ExitCode.NOT_YET
        if isinstance(error, NotYet | StoreInUse | StoreFull)
        else ExitCode.NOT_STARTED
    )


def _obey_signals(server: Server) -> None:
    loop = asyncio.get_running_loop()
    signals_seen = 0

    def obey(number: int) -> None:
        nonlocal signals_seen
        signals_seen += 1
        if signals_seen > 1:
            # Everything that was acknowledged is on disk: a hard end loses nothing.
            os._exit(_SIGNAL_STATUS + number)
        server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, obey, number)
    loop.add_signal_handler(signal.SIGHUP, server.reload)


def run_in_loop(
    loaded: Loaded,
    *,
    ready: Callable[[Server], None],
    leave: Leave | None = None,
    trace_turns: str | None = None,
    standby: bool = False,
) -> ExitCode:
    """Run a queue manager in an event loop of the configured kind."""
    with asyncio.Runner(loop_factory=loop_factory(loaded.config.event_loop)) as runner:
        running = run(loaded, ready=ready, leave=leave, trace_turns=trace_turns, standby=standby)
        try:
            return runner.run(running)
        except asyncio.CancelledError:
            # A standby that was stopped has nothing to end.
            return ExitCode.STOPPED
