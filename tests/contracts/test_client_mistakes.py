"""What a program hears that asks for something wrong, whichever client it uses."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import openmsmq as mq
from openmsmq.client import aio, blocking
from openmsmq.client.settings import Settings
from openmsmq.model import errors
from openmsmq.model.message import AuthenticationRequest
from openmsmq.model.queue import QueuePrivacy
from openmsmq.storage.memory import MemoryStore
from tests.contracts.awaited import connect_awaited
from tests.server_thread import ServerThread, start_server

ORDERS = r"private$\orders"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerThread]:
    with start_server(str(tmp_path), store=MemoryStore(), api_socket="none") as running:
        yield running


@pytest.fixture(params=["blocking", "asyncio"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[[Settings], Any]]:
    if request.param == "blocking":
        yield mq.connect
        return
    with asyncio.Runner() as runner:
        yield lambda settings: connect_awaited(runner, settings)


@pytest.fixture
def manager(server: ServerThread, connect: Callable[[Settings], Any]) -> Iterator[Any]:
    with connect(Settings(address=f"{server.host}:{server.port}")) as connected:
        yield connected


# Options.

KINDS = [
    (client, name)
    for client in (blocking, aio)
    for name in ("QueueManager", "Queue", "Cursor", "Transaction")
]


def verbs(kind: type) -> dict[str, Callable[..., Any]]:
    """All that a program can call on something of a client."""
    return {
        name: getattr(kind, name)
        for name in dir(kind)
        if not name.startswith("_") and inspect.isfunction(getattr(kind, name))
    }


def something(parameter: inspect.Parameter) -> object:
    return {"name": ORDERS, "path": ORDERS, "bodies": ["x"]}.get(parameter.name, 1)


@pytest.mark.parametrize(("client", "name"), KINDS, ids=lambda it: getattr(it, "__name__", it))
def test_no_verb_of_a_client_swallows_an_option(server: ServerThread, client, name: str) -> None:
    found = verbs(getattr(client, name))
    assert found
    swallowed = []

    async def call(verb: str, function: Callable[..., Any], owner: Any) -> None:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        needed = [
            something(each)
            for each in parameters
            if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
        ]
        named = {
            each.name: something(each)
            for each in parameters
            if each.default is each.empty and each.kind is each.KEYWORD_ONLY
        }
        try:
            result = getattr(owner, verb)(*needed, **named, no_such_option=1)
            if inspect.isawaitable(result):
                await result
        except TypeError as error:
            if "no_such_option" in str(error):
                return
        except Exception as error:
            swallowed.append((verb, error))
            return
        swallowed.append((verb, None))

    async def use_all() -> None:
        address = f"{server.host}:{server.port}"
        if client is aio:
            connected = await aio.connect(address)
        else:
            connected = blocking.connect(address)
        created = connected.create_queue(ORDERS)
        queue = await created if client is aio else created
        begun = connected.begin()
        owners = {
            "QueueManager": connected,
            "Queue": queue,
            "Cursor": queue.cursor(),
            "Transaction": await begun if client is aio else begun,
        }
        for verb, function in found.items():
            await call(verb, function, owners[name])
        assert await _or_now(connected.exists(ORDERS)), "nothing has happened"
        await _or_now(connected.close())

    asyncio.run(use_all())
    assert swallowed == []


async def _or_now(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


@pytest.mark.parametrize("connecting", [mq.connect, aio.connect])
def test_connecting_swallows_no_option_either(connecting: Callable[..., Any]) -> None:
    for place in ("127.0.0.1:1", Settings(address="127.0.0.1:1")):
        with pytest.raises(TypeError, match=r"connect\(\) has no option 'tokn': did you mean 'to"):
            connecting(place, tokn="x")


def test_a_misspelt_property_makes_no_open_queue(manager: Any) -> None:
    said = r"create_queue\(\) has no option 'authentication_required': did you mean 'authenticate'"
    with pytest.raises(TypeError, match=said):
        manager.create_queue(ORDERS, authentication_required=True)
    assert not manager.exists(ORDERS)
    manager.create_queue(ORDERS, authenticate=True)
    assert manager.queue(ORDERS).properties().authentication_required


def test_a_misspelt_option_of_a_message_sends_nothing(manager: Any) -> None:
    queue = manager.create_queue(ORDERS)
    with pytest.raises(TypeError, match=r"send\(\) has no option 'recoverabel': did you mean 're"):
        queue.send("x", recoverabel=True)
    with pytest.raises(TypeError, match=r"send_many\(\) has no option 'labels': did you mean 'la"):
        queue.send_many(["x"], labels="x")
    with pytest.raises(TypeError, match=r"change\(\) has no option 'zzz': it has authenticate, ba"):
        queue.change(zzz=1)
    assert queue.count() == 0


def test_a_kind_of_signature_without_a_certificate_is_not_swallowed(manager: Any) -> None:
    queue = manager.create_queue(ORDERS)
    with pytest.raises(errors.PropertiesConflict, match="nothing to sign with"):
        queue.send("x", signature=AuthenticationRequest.SIGNATURE_30)
    assert queue.count() == 0


# A queue that is there already.


def test_a_queue_that_is_there_and_as_asked_for_is_as_good_as_a_new_one(manager: Any) -> None:
    first = manager.create_queue(ORDERS, exist_ok=True, transactional=True, label="x")
    first.send("kept", transaction=mq.SINGLE_MESSAGE)
    again = manager.create_queue(
        ORDERS, exist_ok=True, transactional=True, label="x", privacy=QueuePrivacy.OPTIONAL
    )
    assert again.receive(0).body == "kept"
    manager.create_queue(ORDERS, exist_ok=True)
    with pytest.raises(errors.QueueExists):
        manager.create_queue(ORDERS)


def test_a_queue_that_is_there_and_differs_says_in_what(manager: Any) -> None:
    manager.create_queue(ORDERS, label="first")
    said = "transactional is False, not True; authenticate is False, not True"
    with pytest.raises(errors.QueueExists, match=said):
        manager.create_queue(
            ORDERS, exist_ok=True, transactional=True, label="first", authenticate=True
        )


# A queue manager that is not there yet.


@pytest.mark.parametrize("door", ["tcp", "unix"])
def test_clients_wait_for_a_queue_manager_that_is_starting(
    tmp_path: Path, connect: Callable[[Settings], Any], door: str
) -> None:
    with start_server(str(tmp_path / "a"), store=MemoryStore(), api_socket="none") as earlier:
        port = earlier.port
    path = tmp_path / "api.sock"
    place = f"127.0.0.1:{port}" if door == "tcp" else str(path)
    stop = threading.Event()

    def serve_late() -> None:
        stop.wait(0.4)
        with start_server(
            str(tmp_path / "b"), store=MemoryStore(), api_port=port, api_socket=str(path)
        ):
            stop.wait(30)

    late = threading.Thread(target=serve_late)
    late.start()
    try:
        with connect(Settings(address=place, start_wait_s=20)) as manager:
            assert manager.status().queue_count >= 0
    finally:
        stop.set()
        late.join()


def test_who_does_not_want_to_wait_hears_at_once(
    tmp_path: Path, connect: Callable[[Settings], Any]
) -> None:
    with pytest.raises(mq.ConnectionLost, match=r"no queue manager answers at .*Is it running"):
        connect(Settings(address=str(tmp_path / "api.sock"), start_wait_s=0))


def test_the_wait_is_short_and_of_its_own_accord() -> None:
    assert Settings().start_wait_s == 5.0


# Errors that say what is the matter.


def test_a_cursor_whose_message_was_received_without_it_says_so(manager: Any) -> None:
    queue = manager.create_queue(ORDERS)
    queue.send_many(["one", "two"])
    cursor = queue.cursor()
    cursor.next()
    queue.receive()
    with pytest.raises(errors.MessageAlreadyReceived) as refused:
        cursor.peek()
    said = str(refused.value)
    assert "received already, by this application or by another" in said
    assert "Move the cursor on" in said
    assert cursor.next().body == "two"


@pytest.mark.parametrize("name", [r"DIRECT=TCP:192.0.2.7\private$\x", r"elsewhere\private$\x"])
def test_reading_a_queue_of_another_computer_says_where_to_connect(manager: Any, name: str) -> None:
    for read in (manager.queue(name).receive, manager.queue(name).peek, manager.queue(name).count):
        with pytest.raises(errors.RemoteMachineNotAvailable) as refused:
            read()
        said = str(refused.value)
        assert "is not on this computer" in said
        assert "connect to the queue manager there" in said
        assert "network" not in said


def test_a_message_that_is_too_large_hears_how_large_it_may_be(manager: Any) -> None:
    queue = manager.create_queue(ORDERS)
    with pytest.raises(errors.IllegalPropertySize) as refused:
        queue.send(b"x" * (5 << 20))
    said = str(refused.value)
    assert said.startswith("A property, or the message as a whole, has a size that is not allowed")
    assert "the message takes 5243" in said
    assert "4194304 are allowed" in said
    assert "send a shorter body" in said


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        (lambda _, queue: queue.send("x", acknowledge="full-reach"), "AckRequest.FULL_REACH_QUEUE"),
        (lambda _, queue: queue.send("x", priority="high"), "where 0 to 7 is needed"),
        (lambda _, queue: queue.send("x", application_tag="a"), "give a number"),
        (lambda _, queue: queue.send("x", label=5), "label 5: give a text"),
        (lambda _, queue: queue.send("x", time_to_be_received_s="1h"), "give seconds, or None"),
        (lambda _, queue: queue.peek_by_lookup_id(1, "frist"), "'first', 'previous', 'current'"),
        (lambda _, queue: queue.receive_by_lookup_id(1, "frist"), "'first', 'previous', 'current'"),
        (lambda _, queue: queue.change(privacy=9), "QueuePrivacy.NONE, QueuePrivacy.OPTIONAL"),
        (lambda _, queue: queue.open("recieve"), "AccessMode.RECEIVE, AccessMode.SEND"),
        (lambda it, _: it.open(ORDERS, "recieve"), "AccessMode.RECEIVE, AccessMode.SEND"),
        (lambda it, _: it.open(ORDERS, 1, 9), "ShareMode.DENY_NONE, ShareMode.DENY_RECEIVE"),
        (lambda it, _: it.create_queue(r"private$\b", privacy=9), "QueuePrivacy.NONE, QueueP"),
    ],
)
def test_a_value_that_is_none_of_the_valid_ones_is_told_the_valid_ones(
    manager: Any, attempt: Callable[[Any, Any], Any], said: str
) -> None:
    queue = manager.create_queue(ORDERS)
    with pytest.raises(errors.IllegalPropertyValue) as refused:
        attempt(manager, queue)
    assert said in str(refused.value)
    assert queue.count() == 0
