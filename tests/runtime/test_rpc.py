"""Queues read and managed from afar, by a client that is not ours, through real sockets."""

from __future__ import annotations

import json
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from impacket.dcerpc.v5 import epm, mgmt, rpcrt
from impacket.uuid import uuidtup_to_bin

import openmsmq
from openmsmq.model.errors import AccessDenied, ReceiveTimeout
from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, set_disabled
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.rpc_table import RpcTable
from openmsmq.runtime.rpc import connection as rpc_connection
from openmsmq.runtime.rpc import server as rpc_server
from tests.runtime.remote_client import (
    ADMINISTRATOR,
    MANAGEMENT,
    PASSWORD,
    READER,
    REMOTE_READ,
    WAIT_FOR_EVER,
    RemoteReader,
    connect,
    free_address,
    serving,
    why_not,
)
from tests.runtime.test_server_process import environment
from tests.runtime.test_server_process import serving as process_serving
from tests.server_thread import ServerThread
from tests.unit.protocol.rpc.client import ECHO, bind, offer
from tests.unit.wire.rpc import impacket_calls as idl

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

ENDPOINT_MAPPER = ("e1af8308-5d1f-11c9-91a4-08002b14a0fa", "3.0")
ORDERS = r"private$\orders"
REMOTE_ORDERS = rf"OS:alpha\{ORDERS}"
TRIES = 400


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def server(tmp_path: Path, lines: list[str]) -> Iterator[ServerThread]:
    with serving(tmp_path / "data", lines) as running:
        yield running


def port_of(server: ServerThread) -> int:
    return server.server.rpc_endpoints[0][1]


def application(server: ServerThread) -> Any:
    return openmsmq.connect(f"{server.host}:{server.port}")


def with_orders(server: ServerThread, *bodies: str) -> None:
    with application(server) as here:
        queue = here.create_queue(ORDERS)
        for body in bodies:
            queue.send(body)


def count_of(server: ServerThread) -> int:
    with application(server) as here:
        return int(here.status().message_count)


def mapped(interface: tuple[str, str]) -> str:
    dce = connect(135, None, level=0)
    found = epm.hept_map(
        free_address(), uuidtup_to_bin(interface), protocol="ncacn_ip_tcp", dce=dce
    )
    return str(found)


def eventually(is_so: Callable[[], bool]) -> None:
    for _ in range(TRIES):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it never came to that")


# Where interfaces are.


@pytest.mark.spec("MQRR-2.1-01", "MQRR-3.1.3-01", "MQMR-2.1-01", "MQMR-3.1.3-01")
def test_the_mapper_says_where_to_call(server: ServerThread) -> None:
    for interface in (REMOTE_READ, MANAGEMENT):
        assert mapped(interface) == f"ncacn_ip_tcp:{free_address()}[{port_of(server)}]"
        connect(port_of(server), interface)


@pytest.mark.usefixtures("server")
def test_the_mapper_knows_nothing_else() -> None:
    strange = ("12345678-1234-abcd-ef00-0123456789ab", "1.0")
    with pytest.raises(rpcrt.DCERPCException) as refused:
        mapped(strange)
    assert refused.value.get_error_code() == 0x16C9A0D6


@pytest.mark.usefixtures("server")
def test_the_mapper_lists_what_is_there() -> None:
    found = epm.hept_lookup(free_address(), dce=connect(135, None, level=0))
    annotations = {bytes(each["annotation"]).rstrip(b"\0") for each in found}
    assert {b"Message Queuing - RemoteRead V1", b"Message Queuing - QMMgmt V1"} < annotations


@pytest.mark.parametrize("at_mapper", [True, False])
def test_every_door_tells_of_itself(server: ServerThread, at_mapper: bool) -> None:
    there = 135 if at_mapper else port_of(server)
    dce = connect(there, ("afa8bd80-7d8a-11c9-bef4-08002b102989", "1.0"), level=0)
    told = mgmt.hinq_if_ids(dce)["if_id_vector"]["if_id"]
    assert len(told) == (2 if at_mapper else 3)
    assert mgmt.his_server_listening(dce)["status"] == 0
    with pytest.raises(rpcrt.DCERPCException, match="access_denied"):
        mgmt.hstop_server_listening(dce)


# Reading.


def test_a_message_is_read_in_two_steps(server: ServerThread) -> None:
    with_orders(server, "one", "two")
    reader = RemoteReader(port_of(server))
    assert int.from_bytes(reader.call(0, b""), "little") == port_of(server)
    orders = reader.open(REMOTE_ORDERS)
    result, packet = reader.receive(orders, 1)
    assert result == 0
    assert "one".encode("utf-16-le") in packet
    assert reader.end(orders, 1, take=True) == 0
    assert count_of(server) == 1
    result, packet = reader.receive(orders, 2)
    assert "two".encode("utf-16-le") in packet
    assert reader.end(orders, 2, take=False) == 0
    assert count_of(server) == 1


def test_a_long_message_comes_in_many_fragments(server: ServerThread) -> None:
    with_orders(server, "x" * 100_000)
    reader = RemoteReader(port_of(server))
    result, packet = reader.receive(reader.open(REMOTE_ORDERS), 1)
    assert result == 0
    assert packet.count(b"x\0") >= 100_000


def test_a_read_that_waits_leaves_the_connection_free(server: ServerThread) -> None:
    with_orders(server)
    reader = RemoteReader(port_of(server))
    orders = reader.open(REMOTE_ORDERS)
    reader.send(7, reader.receive_stub(orders, 5, WAIT_FOR_EVER))
    # R_CancelReceive comes by the same connection, and ends it.
    reader.send(8, orders + (5).to_bytes(4, "little"))
    cancelled, _ = reader.received(reader.answer())
    assert cancelled == 0xC00E0008
    assert reader.answer()[-4:] == bytes(4)
    # So does a message, for the next one.
    reader.send(7, reader.receive_stub(orders, 6, WAIT_FOR_EVER))
    with application(server) as here:
        here.queue(ORDERS).send("at last")
    result, packet = reader.received(reader.answer())
    assert result == 0
    assert "at last".encode("utf-16-le") in packet


def test_what_a_lost_reader_had_is_there_for_others(server: ServerThread) -> None:
    with_orders(server, "one")
    reader = RemoteReader(port_of(server))
    orders = reader.open(REMOTE_ORDERS)
    assert reader.receive(orders, 1)[0] == 0
    with application(server) as here:
        queue = here.queue(ORDERS)
        with pytest.raises(ReceiveTimeout):
            queue.receive(timeout=0)
        reader.close()
        assert queue.receive(timeout=20).body == "one"


@pytest.mark.spec("MQRR-2.2.4.1-01", "MQRR-2.2.4.2-01")
def test_a_handle_of_another_interface_is_refused_and_one_of_any_type_is_taken(
    server: ServerThread,
) -> None:
    with_orders(server, "one")
    mapper = connect(135, None, level=0)
    mapper.bind(uuidtup_to_bin(ENDPOINT_MAPPER))
    question = epm.ept_lookup()
    question["inquiry_type"] = epm.RPC_C_EP_ALL_ELTS
    question["object"] = epm.NULL
    question["Ifid"] = epm.NULL
    question["vers_option"] = epm.RPC_C_VERS_ALL
    question["entry_handle"]["context_handle_uuid"] = bytes(16)
    question["max_ents"] = 1
    strange = mapper.request(question)["entry_handle"].getData()
    assert strange != bytes(20)
    reader = RemoteReader(port_of(server))
    orders = reader.open(REMOTE_ORDERS)
    for operation in (3, 4, 6):
        with pytest.raises(rpcrt.DCERPCException, match=r"1c00001a|nca_s_fault_context_mismatch"):
            reader.call(operation, strange)
    # R_OpenQueue gave the type that is serialized; R_StartReceive takes the other one.
    assert reader.receive(orders, 1)[0] == 0


def test_a_handle_is_of_no_use_to_another_group_or_interface(server: ServerThread) -> None:
    with_orders(server, "one")
    reader = RemoteReader(port_of(server))
    orders = reader.open(REMOTE_ORDERS)
    other = RemoteReader(port_of(server))
    with pytest.raises(rpcrt.DCERPCException, match=r"1c00001a|nca_s_fault_context_mismatch"):
        other.receive(orders, 1)
    assert reader.receive(orders, 1)[0] == 0


# Who may.


def test_rights_are_those_of_the_account_and_refusals_are_audited(
    server: ServerThread, tmp_path: Path
) -> None:
    with_orders(server, "one")
    reader = RemoteReader(port_of(server), user=READER)
    with pytest.raises(rpcrt.DCERPCException) as refused:
        reader.open(REMOTE_ORDERS)
    assert f"{AccessDenied.code:x}" in str(refused.value).lower()
    audited = [
        json.loads(line)
        for line in (tmp_path / "data/audit.log").read_text(encoding="utf-8").splitlines()
    ]
    (denied,) = [each for each in audited if each.get("who") == f"account:{READER}"]
    assert (denied["action"], denied["peer"].split(":")[0]) == ("open-queue", "127.0.0.1")


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (0, "none"),
        (rpcrt.RPC_C_AUTHN_LEVEL_CONNECT, "connect"),
        (rpcrt.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY, "integrity"),
    ],
)
def test_calls_below_the_least_level_are_refused_and_logged(
    server: ServerThread, lines: list[str], level: int, name: str
) -> None:
    reader = RemoteReader(port_of(server), level=level)
    with pytest.raises(rpcrt.DCERPCException, match="access_denied"):
        reader.call(0, b"")
    (line,) = [each for each in lines if "rpc-refused" in each]
    assert f"level={name}" in line
    if level:
        assert f"caller=account:{ADMINISTRATOR}" in line


def test_a_lower_level_is_for_an_operator_to_allow(tmp_path: Path) -> None:
    with serving(tmp_path / "data", minimum_level="integrity") as server:
        reader = RemoteReader(port_of(server), level=rpcrt.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY)
        assert int.from_bytes(reader.call(0, b""), "little") == port_of(server)


def test_a_wrong_password_is_refused_and_logged(server: ServerThread, lines: list[str]) -> None:
    with pytest.raises(Exception, match=r"access_denied|reset|closed"):
        RemoteReader(port_of(server), password="not this one, sorry").call(0, b"")
    assert any("rpc-refused" in each and "password is wrong" in each for each in lines)
    assert not any("defect" in each for each in lines)


def test_an_account_that_is_disabled_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc_server, "RPC_PROOFS_LOOK_MS", 50)
    with serving(tmp_path / "data") as server:
        reader = RemoteReader(port_of(server))
        reader.call(0, b"")
        set_disabled(tmp_path / "data" / ACCOUNTS_FILE, ADMINISTRATOR, disabled=True)
        socket_of = reader.dce.get_rpc_transport().get_socket()
        socket_of.settimeout(20)
        assert socket_of.recv(1) == b""


def test_nobody_who_comes_in_keeps_a_disabled_account_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever proves himself has the accounts read again: that others have changed stays news."""
    monkeypatch.setattr(rpc_server, "RPC_PROOFS_LOOK_MS", 500)
    with serving(tmp_path / "data") as server:
        reader = RemoteReader(port_of(server))
        reader.call(0, b"")
        set_disabled(tmp_path / "data" / ACCOUNTS_FILE, ADMINISTRATOR, disabled=True)
        RemoteReader(port_of(server), user=READER).call(0, b"")
        socket_of = reader.dce.get_rpc_transport().get_socket()
        socket_of.settimeout(10)
        assert socket_of.recv(1) == b""


# Processes, as operators start them.


def test_an_operator_adds_an_account_and_a_reader_comes_in(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    file = tmp_path / "openmsmq.toml"
    file.write_text("[rpc]\nenabled = true\n", encoding="utf-8")
    command = [sys.executable, "-m", "openmsmq.cli.app", "user", "add", READER]
    added = subprocess.run(
        [*command, "--data", str(data)],
        input=PASSWORD + "\n",
        text=True,
        capture_output=True,
        check=False,
        env=environment(),
    )
    assert added.returncode == 0, added.stderr
    flags = ("--config", str(file), "--address", free_address())
    with process_serving(data, *flags) as process:
        with openmsmq.connect(f"{process.host}:{process.port}") as here:
            orders = here.create_queue(ORDERS)
            orders.send("one")
        run = [sys.executable, "-m", "openmsmq.cli.app", "--qm", process.facts["address"]]
        allowed = subprocess.run(
            [*run, "queue", "acl", "grant", ORDERS, f"account:{READER}", "receive"],
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        assert allowed.returncode == 0, allowed.stderr
        reader = RemoteReader(2103, user=READER)
        result, packet = reader.receive(reader.open(REMOTE_ORDERS), 1)
        assert result == 0
        assert "one".encode("utf-16-le") in packet
        reader.close()
        status, errors = process.end(signal.SIGTERM)
    assert status == 0
    assert "listening door=rpc address" in errors


# Managing.


def test_private_queues_are_listed_from_afar(server: ServerThread) -> None:
    with_orders(server)
    dce = connect(port_of(server), MANAGEMENT)
    # R_QMMgmtGetInfo for the computer, property 2: written by hand after the layout.
    stub = struct.pack("<HHI", 1, 1, 0) + struct.pack("<III", 1, 1, 2) + struct.pack("<I", 1)
    stub += bytes(-len(stub) % 8) + struct.pack("<HBBIH", 1, 0, 0, 0, 1)
    dce.call(0, stub)
    found = idl.read(idl.R_QMMgmtGetInfoResponse, dce.recv())
    assert found["ErrorCode"] == 0
    assert b"o\0r\0d\0e\0r\0s\0" in found.getData()


# Starting, limits, and the end.


def test_without_anybody_who_could_prove_himself_it_does_not_start(tmp_path: Path) -> None:
    config = ServerConfig(
        data=str(tmp_path / "data"),
        address=free_address(),
        api_port=0,
        transfer=False,
        log_level="error",
        rpc=RpcTable(enabled=True),
    )
    with (
        pytest.raises(
            ConfigError, match=r"without accounts and without a keytab.*openmsmq user add"
        ),
        ServerThread(config),
    ):
        pass


@pytest.mark.spec("MQRR-3.1.4.1-02")
def test_the_next_port_is_taken_while_one_is_taken(tmp_path: Path, lines: list[str]) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((free_address(), 2103))
        taken.listen()
        with serving(tmp_path / "data", lines) as server:
            assert port_of(server) == 2114
            assert mapped(REMOTE_READ).endswith("[2114]")
    assert any("listening door=rpc address" in each for each in lines)


def test_the_mapper_can_be_left_to_others(tmp_path: Path, lines: list[str]) -> None:
    with serving(tmp_path / "data", lines, endpoint_mapper="off") as server:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((free_address(), 135), 5)
        assert RemoteReader(port_of(server)).call(0, b"")
    assert any("rpc-mapper-off" in each and "135" in each for each in lines)


def test_one_address_has_so_many_connections_and_no_more(tmp_path: Path, lines: list[str]) -> None:
    with serving(tmp_path / "data", lines, connections_per_peer_max=2) as server:
        where = (free_address(), port_of(server))
        with socket.create_connection(where), socket.create_connection(where):
            eventually(lambda: not any("connection-refused" in each for each in lines))
            with socket.create_connection(where) as third:
                third.settimeout(20)
                assert third.recv(1) == b""
    assert any("connections_per_peer_max" in each for each in lines)


def test_who_proves_nothing_and_says_nothing_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc_connection, "RPC_UNPROVED_MS", 100)
    with serving(tmp_path / "data") as server:
        with socket.create_connection((free_address(), port_of(server))) as silent:
            silent.settimeout(20)
            silent.sendall(bind(offer(0, ECHO)))
            assert silent.recv(4)
            while silent.recv(4096):
                pass
        # Who has proved himself may wait as long as he likes.
        reader = RemoteReader(port_of(server))
        time.sleep(0.3)
        assert reader.call(0, b"")


def test_nonsense_costs_its_own_connection_only(server: ServerThread, lines: list[str]) -> None:
    reader = RemoteReader(port_of(server))
    for nonsense in (b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\xff" * 4000, b"\x05\0\x0b\x03"):
        with socket.create_connection((free_address(), port_of(server))) as made:
            made.settimeout(20)
            made.sendall(nonsense)
            made.shutdown(socket.SHUT_WR)
            while made.recv(4096):
                pass
    assert reader.call(0, b"")
    assert not any("defect" in each for each in lines)


def test_a_stop_ends_reads_that_wait(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        with_orders(server)
        reader = RemoteReader(port_of(server))
        orders = reader.open(REMOTE_ORDERS)
        reader.send(7, reader.receive_stub(orders, 5, WAIT_FOR_EVER))
        stopper = threading.Thread(target=server.stop)
        stopper.start()
        with pytest.raises((rpcrt.DCERPCException, OSError, struct.error)):
            reader.answer()
        stopper.join(20)
        assert not stopper.is_alive()
