"""A directory that queue managers have, over real connections: joining, copies, absent servers."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

import openmsmq
from openmsmq.client.blocking import QueueManager
from openmsmq.model.clock import Instant
from openmsmq.model.directory import ObjectKind, Removal
from openmsmq.model.errors import NoDirectory
from openmsmq.model.identity import Guid
from openmsmq.model.topology import DirectoryServerKind, QueueManagerInfo
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.loading import load
from openmsmq.runtime.directory.embedded import EmbeddedDirectory
from openmsmq.runtime.limits import DIRECTORY_SERVERS_RENEW_S
from openmsmq.runtime.start_errors import StartError
from tests.runtime.computers import (
    PROGRAM,
    WITHIN_S,
    Computer,
    environment,
    neighbours,
    running,
    wait_for,
    waiting_count,
)
from tests.runtime.namespaces import required_laboratory
from tests.runtime.scripted_engine import free_port
from tests.server_thread import ServerThread


def config(folder: Path, name: str, **options: object) -> ServerConfig:
    return ServerConfig(
        **{  # type: ignore[arg-type]
            "name": name,
            "data": str(folder / name),
            "api_port": 0,
            "api_socket": "none",
            "transfer": False,
            "directory_poll_s": 1,
            **options,
        }
    )


@contextlib.contextmanager
def server(folder: Path, name: str, **options: object) -> Iterator[ServerThread]:
    with ServerThread(config(folder, name, **options)) as running:
        yield running


def address(running: ServerThread) -> str:
    return f"{running.host}:{running.port}"


def connected(running: ServerThread) -> QueueManager:
    return openmsmq.connect(address(running))


def kind_of_server(manager: QueueManager, own: Guid) -> DirectoryServerKind | None:
    """Return what the directory knows it as, once it is registered."""
    known = manager.read_directory().managers.get(own)
    return None if known is None else known.directory_server


def test_a_queue_manager_that_the_directory_knows_is_who_the_directory_says(
    tmp_path: Path,
) -> None:
    with server(tmp_path, "OFFICE", directory_server=True) as office:
        with connected(office) as manager:
            image = manager.read_directory()
            (site,) = image.sites
            known = QueueManagerInfo(
                identifier=Guid(b"the known shop!!"), computer_name="SHOP", sites=(site,)
            )
            manager.write_directory([known])
        with (
            server(tmp_path, "SHOP", directory=(address(office),)) as shop,
            connected(shop) as manager,
        ):
            manager.refresh_directory()
            status = manager.status()
            assert status.manager == known.identifier
            assert (status.directory, status.directory_problem) == ("copy", "")
            seen = manager.read_directory().managers[known.identifier]
            wait_for(lambda: manager.read_directory().managers[known.identifier].addresses)
            assert seen.sites == (site,)


def test_a_new_queue_manager_does_not_start_without_its_directory(tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{free_port('127.0.0.1')}"
    with (
        pytest.raises(StartError, match="start it when the directory can be reached"),
        server(tmp_path, "SHOP", directory=(nobody,)),
    ):
        pass


@pytest.mark.spec("MQOD-2.7.4-01")
def test_a_queue_manager_begins_in_workgroup_mode_and_comes_to_its_directory_by_itself(
    tmp_path: Path,
) -> None:
    port = free_port("127.0.0.1")
    late = f"127.0.0.1:{port}"
    office_config = config(tmp_path, "OFFICE", directory_server=True, api_port=port)
    with (
        server(tmp_path, "SHOP", directory=(late,), start_without_directory=True) as shop,
        connected(shop) as manager,
    ):
        # Unavailable at the start: what needs no directory works, the rest says why.
        identifier = Guid(manager.status().manager)
        manager.create_queue(ORDERS)
        manager.queue(ORDERS).send(b"before the directory")
        assert manager.status().directory_problem
        for needs_it in (manager.read_directory, lambda: manager.create_queue(r".\public")):
            with pytest.raises(NoDirectory):
                needs_it()
        # It comes, and nobody tells the queue manager.
        with ServerThread(office_config) as office, connected(office) as other:
            soon(lambda: other.read_directory().manager_named("SHOP"))
            soon(lambda: not manager.status().directory_problem)
            assert other.read_directory().manager_named("SHOP").identifier == identifier
            manager.create_queue(r".\public")
            soon(lambda: found(other) == [r"SHOP\public"])
        # Lost while running: the same again, beside what the copy knows.
        soon(lambda: manager.status().directory_problem)
        with pytest.raises(NoDirectory):
            manager.create_queue(r".\more")
        assert found(manager) == [r"SHOP\public"]
        assert manager.queue(ORDERS).receive(timeout=0).body == b"before the directory"
        # And back.
        with ServerThread(office_config), connected(shop):
            soon(lambda: not manager.status().directory_problem)
            manager.create_queue(r".\more")


@pytest.mark.spec("MQOD-2.7.6-01")
def test_a_directory_that_knows_the_computer_as_another_one_is_offline_until_it_is_mended(
    tmp_path: Path,
) -> None:
    port = free_port("127.0.0.1")
    office_config = config(tmp_path, "OFFICE", directory_server=True, api_port=port)
    known = QueueManagerInfo(identifier=Guid(b"the known shop!!"), computer_name="SHOP")
    with ServerThread(office_config) as office, connected(office) as other:
        (site,) = other.read_directory().sites
        other.write_directory([msgspec.structs.replace(known, sites=(site,))])
    with (
        server(
            tmp_path, "SHOP", directory=(f"127.0.0.1:{port}",), start_without_directory=True
        ) as shop,
        connected(shop) as manager,
    ):
        own = Guid(manager.status().manager)
        assert own != known.identifier
        with ServerThread(office_config) as office, connected(office) as other:
            # Reported, with both identifiers and what to do.
            soon(lambda: str(known.identifier) in manager.status().directory_problem)
            assert str(own) in manager.status().directory_problem
            assert "remove that object" in manager.status().directory_problem
            # Offline: nothing is written under another's name, and the rest works.
            with pytest.raises(NoDirectory, match="remove that object"):
                manager.create_queue(r".\public")
            assert other.read_directory().manager_named("SHOP").identifier == known.identifier
            manager.create_queue(ORDERS)
            # Tried again by itself.
            other.write_directory([Removal(ObjectKind.MANAGER, known.identifier)])
            soon(lambda: not manager.status().directory_problem)
            manager.create_queue(r".\public")
            soon(lambda: found(other) == [r"SHOP\public"])
            assert other.read_directory().manager_named("SHOP").identifier == own


def test_where_there_is_no_directory_to_come_nobody_begins_without_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no directory to come later"):
        config(tmp_path, "SHOP", start_without_directory=True)


def test_one_that_has_a_copy_starts_without_its_directory(tmp_path: Path) -> None:
    with (
        server(tmp_path, "OFFICE", directory_server=True) as office,
        server(tmp_path, "SHOP", directory=(address(office),)) as shop,
        connected(shop) as manager,
    ):
        manager.refresh_directory()
        where = address(office)
    with server(tmp_path, "SHOP", directory=(where,)) as shop, connected(shop) as manager:
        with pytest.raises(NoDirectory):
            manager.refresh_directory()
        assert manager.status().directory_problem
        assert manager.read_directory().manager_named("OFFICE") is not None


def test_a_read_copy_serves_others_while_the_original_is_away(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        office = server(tmp_path, "OFFICE", directory_server=True)
        original = office.__enter__()
        first = address(original)
        backup = stack.enter_context(
            server(tmp_path, "BACKUP", directory_server=True, directory=(first,))
        )
        with connected(backup) as manager:
            manager.refresh_directory()
            own = Guid(manager.status().manager)
            wait_for(lambda: kind_of_server(manager, own))
            backup_kind = DirectoryServerKind.BACKUP_SITE_CONTROLLER
            assert kind_of_server(manager, own) is backup_kind
        servers = (first, address(backup))
        shop = stack.enter_context(server(tmp_path, "SHOP", directory=servers))
        with connected(shop) as manager:
            # A change that reaches a copy goes on to the original.
            manager.create_queue(r".\orders")
            with connected(backup) as other:
                other.refresh_directory()
            office.__exit__(None, None, None)
            manager.refresh_directory()
            assert manager.status().directory_problem == ""
            with pytest.raises(NoDirectory):
                manager.create_queue(r".\more")
        late = stack.enter_context(server(tmp_path, "LATE", directory=servers))
        with connected(late) as manager:
            wait_for(manager.find_queues)
            assert [queue.path_name for queue in manager.find_queues()] == [r"SHOP\orders"]


@pytest.mark.spec("MQDMPR-3.1.3-08")
def test_servers_that_were_searched_for_are_searched_for_again_in_time(tmp_path: Path) -> None:
    """The first server answers all the time; another one is found beside it, then instead of it."""
    assert DIRECTORY_SERVERS_RENEW_S == 12 * 3600
    now_ms, searches, incarnations = 0, 0, []
    with (
        server(tmp_path, "OFFICE", directory_server=True) as office,
        server(tmp_path, "OTHER", directory_server=True) as other,
    ):
        answers = [(address(office),), (), (address(other), address(office))]

        async def find() -> tuple[str, ...]:
            nonlocal searches
            searches += 1
            return answers[searches - 1]

        async def ask() -> None:
            nonlocal now_ms
            port = EmbeddedDirectory((), find=find, clock=lambda: Instant(now_ms, 0))
            for hours in (0, 11.9, 0.1, 11.9, 0.1):
                now_ms += round(hours * 3_600_000)
                told = await port.changes()
                incarnations.append((searches, told.position.incarnation))
            await port.close()

        asyncio.run(ask())
    first, second = incarnations[0][1], incarnations[-1][1]
    assert incarnations == [(1, first), (1, first), (2, first), (2, first), (3, second)]
    assert first != second


ORDERS = r"private$\orders"
NEVER_S = 3_600
"""A copy that would ask by itself long after the test has ended."""
SOON_S = 60.0
"""Long before that, and long enough for a busy computer."""


def soon(happened: Callable[[], object]) -> None:
    """Wait for something that has to happen long before anybody asks by himself."""
    wait_for(happened, within_s=SOON_S)


def let_join(manager: QueueManager, name: str) -> None:
    """Wait until a queue manager has read the directory, and a computer is registered there."""
    manager.refresh_directory()
    wait_for(lambda: manager.read_directory().manager_named(name))


def found(manager: QueueManager) -> list[str]:
    return [queue.path_name for queue in manager.find_queues()]


def test_a_change_of_the_directory_reaches_all_copies_at_once(tmp_path: Path) -> None:
    patient = {"directory_poll_s": NEVER_S}
    with contextlib.ExitStack() as stack:
        office = stack.enter_context(server(tmp_path, "OFFICE", directory_server=True))
        backup = stack.enter_context(
            server(
                tmp_path, "BACKUP", directory_server=True, directory=(address(office),), **patient
            )
        )
        let_join(stack.enter_context(connected(backup)), "BACKUP")
        shop = stack.enter_context(
            server(tmp_path, "SHOP", directory=(address(backup),), **patient)
        )
        at_shop = stack.enter_context(connected(shop))
        let_join(at_shop, "SHOP")
        at_office = stack.enter_context(connected(office))
        # It goes over the copy of the backup.
        at_office.create_queue(r".\first")
        soon(lambda: r"OFFICE\first" in found(at_shop))
        at_office.create_queue(r".\second")
        soon(lambda: r"OFFICE\second" in found(at_shop))


def test_a_public_queue_is_opened_elsewhere_as_soon_as_it_is_created(tmp_path: Path) -> None:
    with (
        server(tmp_path, "OFFICE", directory_server=True) as office,
        server(tmp_path, "A", directory=(address(office),), directory_poll_s=NEVER_S) as one,
        server(tmp_path, "B", directory=(address(office),), directory_poll_s=NEVER_S) as other,
        connected(one) as at_one,
        connected(other) as at_other,
    ):
        for number in range(5):
            at_one.create_queue(rf".\orders{number}")
            assert at_other.format_name(rf"A\orders{number}").startswith("PUBLIC=")


def test_a_copy_hears_of_changes_again_when_its_server_has_come_back(tmp_path: Path) -> None:
    port = free_port("127.0.0.1")
    where = f"127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        office = stack.enter_context(contextlib.ExitStack())
        office.enter_context(server(tmp_path, "OFFICE", directory_server=True, api_port=port))
        shop = stack.enter_context(
            server(tmp_path, "SHOP", directory=(where,), directory_poll_s=NEVER_S)
        )
        manager = stack.enter_context(connected(shop))
        let_join(manager, "SHOP")
        office.close()
        # It is noticed at once that the server is gone, not at the next question.
        soon(lambda: manager.status().directory_problem)
        stack.enter_context(server(tmp_path, "OFFICE", directory_server=True, api_port=port))
        manager.refresh_directory()
        with openmsmq.connect(where) as at_office:
            at_office.create_queue(r".\after")
        soon(manager.find_queues)


def test_a_server_that_lets_nobody_wait_is_asked_from_time_to_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openmsmq.manager.requests.directory.DIRECTORY_READS_WAITING_MAX_COUNT", 0)
    with (
        server(tmp_path, "OFFICE", directory_server=True) as office,
        server(tmp_path, "SHOP", directory=(address(office),), directory_poll_s=1) as shop,
        connected(office) as at_office,
        connected(shop) as at_shop,
    ):
        let_join(at_shop, "SHOP")
        at_office.create_queue(r".\new")
        soon(at_shop.find_queues)


def members(folder: Path, *names: str) -> list[Computer]:
    """Make computers of an enterprise: pings have a port of their own, discovery has the other."""
    addresses = [f"127.0.0.{number}" for number in range(2, 2 + len(names))]
    return neighbours(folder, *names, ping_port=free_port(*addresses))


def test_what_a_routing_server_has_taken_for_one_whom_it_does_not_know_yet_arrives(
    tmp_path: Path,
) -> None:
    """A recoverable message that was acknowledged is not dropped: its queue manager joins later."""
    office, gate, clerk, late = members(tmp_path, "OFFICE", "GATE", "CLERK", "LATE")
    with running(late), late.connect() as manager:
        manager.create_queue(ORDERS)
        orders = manager.names(ORDERS).private_name
    office.options = ("--directory-server",)
    gate.options = ("--directory", office.qm, "--directory-poll-s", "1", "--routing-server")
    clerk.options = late.options = ("--directory", office.qm)
    clerk.configure(f'[next_hops]\n"{late.identifier}" = "{gate.address}"\n')
    with running(office), running(gate, clerk), gate.connect() as between:
        let_join(between, "CLERK")
        office.end()
        with clerk.connect() as source:
            source.queue(orders).send(b"for whom", recoverable=True)
            wait_for(lambda: waiting_count(source, orders) == 0)
        assert waiting_count(between, orders) == 1
        office.start()
        with running(late), late.connect() as target:
            assert target.queue(ORDERS).receive(timeout=WITHIN_S).body_bytes == b"for whom"
        office.end()


def test_a_path_name_reaches_a_computer_whose_name_nobody_else_knows(tmp_path: Path) -> None:
    office, shop = members(tmp_path, "OFFICE", "NO-SUCH-HOST")
    office.options = ("--directory-server",)
    shop.options = ("--directory", office.qm)
    with (
        running(office),
        running(shop),
        office.connect() as source,
        shop.connect() as target,
    ):
        orders = target.create_queue(ORDERS)
        let_join(source, "NO-SUCH-HOST")
        source.queue(rf"NO-SUCH-HOST\{ORDERS}").send(b"by name", recoverable=True)
        assert orders.receive(timeout=WITHIN_S).body_bytes == b"by name"


def test_a_long_directory_comes_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openmsmq.manager.requests.directory.DIRECTORY_PART_MAX_BYTES", 400)
    with server(tmp_path, "OFFICE", directory_server=True) as office, connected(office) as manager:
        image = manager.read_directory()
        (site,) = image.sites
        manager.write_directory(
            [
                QueueManagerInfo(
                    identifier=Guid(bytes([number]) * 16),
                    computer_name=f"QM{number}",
                    sites=(site,),
                )
                for number in range(1, 60)
            ]
        )
        assert len(manager.read_directory().managers) == 60


def test_one_directory_is_enough(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="use one of them"):
        config(tmp_path, "A", directory=("127.0.0.1",), directory_discovery=True)
    with pytest.raises(ConfigError, match="domain controllers"):
        config(tmp_path, "A", directory_server=True, active_directory={"servers": ["dc"]})


def test_the_table_of_active_directory_is_read(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text('data = "x"\n[active_directory]\nservers = ["dc.example"]\n', encoding="utf-8")
    read = load({}, {}, str(file)).config
    assert read.active_directory == {"servers": ["dc.example"]}
    file.write_text('data = "x"\nactive_directory = 3\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="active_directory is a table"):
        load({}, {}, str(file))
    wrong = msgspec.structs.replace(read, active_directory={"servers": []}, data=str(tmp_path))
    with pytest.raises(ConfigError, match=r"\[active_directory\] is wrong"), ServerThread(wrong):
        pass


def test_a_directory_is_found_by_broadcast(tmp_path: Path) -> None:
    with required_laboratory("lan") as lab:
        office = lab.host("office", lan="10.97.0.1")
        shop = lab.host("shop", lan="10.97.0.2")
        # Whoever joins a directory changes it, so it has to show who it is.
        token = tmp_path / "token"
        token.write_text("s3cret", encoding="utf-8")
        common = ["--api-socket", "api.sock", "--token-file", str(token)]
        common += ["--directory-token-file", str(token)]
        with (
            process(tmp_path, office.name, "OFFICE", "10.97.0.1", "--directory-server", *common),
            process(tmp_path, shop.name, "SHOP", "10.97.0.2", "--directory-discovery", *common),
            openmsmq.connect(str(tmp_path / "SHOP" / "api.sock")) as manager,
        ):
            manager.refresh_directory()
            wait_for(lambda: manager.read_directory().manager_named("SHOP"))
            assert manager.read_directory().manager_named("OFFICE") is not None


@contextlib.contextmanager
def process(folder: Path, namespace: str, name: str, address: str, *options: str) -> Iterator[None]:
    command = ["ip", "netns", "exec", namespace, *PROGRAM, "serve", "--name", name]
    command += ["--data", str(folder / name), "--address", address, *options]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    try:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("ready ")
        yield
    finally:
        running.terminate()
        running.communicate(timeout=30)
