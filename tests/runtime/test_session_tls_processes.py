"""Queue managers as processes with mutual TLS between them, or a tunnel."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import openmsmq
from openmsmq.model.peers import PeerPolicy, PeerRule
from openmsmq.protocol.config import TransferConfig
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.session_tls_table import SessionTlsTable
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.sessions import tls as session_tls
from openmsmq.storage.memory import MemoryStore
from tests.runtime.computers import (
    Computer,
    explanations,
    neighbours,
    running,
    wait_for,
    waiting_count,
)
from tests.runtime.scripted_engine import free_port
from tests.runtime.session_certificates import DAY, NOW, Identity
from tests.runtime.tunnels import Tunnel
from tests.server_thread import ServerThread

QUEUE = r"private$\orders"
COUNT = 300


def bodies(first: int, count: int) -> list[bytes]:
    return [b"order %d" % number for number in range(first, first + count)]


def send_in_transactions(manager: openmsmq.QueueManager, name: str, wanted: list[bytes]) -> None:
    queue = manager.queue(name)
    for begin in range(0, len(wanted), 10):
        with manager.transaction() as work:
            queue.send_many(wanted[begin : begin + 10], transaction=work)


def receive(manager: openmsmq.QueueManager, count: int) -> list[bytes]:
    queue = manager.queue(QUEUE)
    return [queue.receive(timeout=30).body_bytes for _ in range(count)]


def tables(port: int, *, name: str, address: str, required: bool = True, more: str = "") -> str:
    """The tables of a computer that has one peer over TLS."""
    return (
        f'[session_tls]\ncertificate = "own.pem"\npeer_certificates = "peers"\nport = {port}\n'
        f"required = {str(required).lower()}\n{more}\n"
        f'[peers.{name}]\naddresses = ["{address}"]\ntls = true\n'
    )


def provide(computer: Computer, own: Identity, **peers: Identity) -> None:
    """Put certificates where a computer looks for them."""
    (computer.data / "peers").mkdir(parents=True, exist_ok=True)
    own.save(computer.data / "own.pem")
    for name, peer in peers.items():
        (computer.data / "peers" / f"{name}.pem").write_text(peer.pem)


@contextlib.contextmanager
def pair(
    folder: Path, shown_by_shop: Identity | None = None
) -> Iterator[tuple[Computer, Computer]]:
    """Two computers that talk to each other over TLS only, if their certificates are good."""
    office, shop = neighbours(folder, "OFFICE", "SHOP")
    port = free_port(office.address, shop.address)
    identities = Identity("office"), Identity("shop")
    provide(office, identities[0], shop=identities[1])
    provide(shop, shown_by_shop or identities[1], office=identities[0])
    office.configure(tables(port, name="shop", address=shop.address))
    shop.configure(tables(port, name="office", address=office.address))
    with running(office, shop):
        yield office, shop


def test_transactional_messages_go_both_ways_over_tls_and_the_plain_port_is_closed(tmp_path):
    with (
        pair(tmp_path) as (office, shop),
        office.connect() as here,
        shop.connect() as there,
    ):
        assert "sessions" not in office.facts
        assert office.facts["sessions-tls"].startswith(office.address)
        for manager in (here, there):
            manager.create_queue(QUEUE, transactional=True)
        send_in_transactions(here, shop.queue(QUEUE), bodies(0, COUNT))
        send_in_transactions(there, office.queue(QUEUE), bodies(1000, COUNT))
        assert receive(there, COUNT) == bodies(0, COUNT)
        assert receive(here, COUNT) == bodies(1000, COUNT)
        # The acknowledgments have come, too.
        wait_for(
            lambda: (
                not waiting_count(here, shop.queue(QUEUE))
                and not waiting_count(there, office.queue(QUEUE))
            ),
            otherwise=lambda: explanations(here, there),
        )


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (Identity("shop"), "no authority of [session_tls] vouches for it"),
        (Identity("shop", end=NOW - DAY), "its certificate is refused"),
    ],
    ids=["unknown", "expired"],
)
def test_outgoing_says_in_a_sentence_why_there_is_no_tls(tmp_path, shown, words):
    with pair(tmp_path, shown) as (office, shop), office.connect() as here:
        name = shop.queue(QUEUE)
        here.queue(name).send(b"kept", recoverable=True)
        wait_for(
            lambda: words in here.outgoing_queue(name).explanation,
            otherwise=lambda: explanations(here),
        )
        [shown_queue] = office.objects("outgoing", "show", name)
        assert words in shown_queue["explanation"]
        assert here.outgoing_queue(name).message_count == 1


def test_who_is_refused_learns_it_from_his_own_queue_manager(tmp_path):
    """In TLS 1.3 the one who calls is judged last, when it has believed itself connected."""
    with pair(tmp_path, Identity("shop")) as (office, shop), shop.connect() as there:
        name = office.queue(QUEUE)
        there.queue(name).send(b"kept", recoverable=True)
        wait_for(
            lambda: "refused the certificate of this one" in there.outgoing_queue(name).explanation,
            otherwise=lambda: explanations(there),
        )


def test_a_tunnel_stands_in_for_the_tls_of_a_computer_that_has_none(tmp_path):
    """The shop is as a Windows host is: plain MSMQ on its own address, and a tunnel on each way."""
    office, shop = neighbours(tmp_path, "OFFICE", "SHOP")
    port, tunnel_port = free_port(office.address), free_port(shop.address)
    entrance = "127.0.0.9"
    identities = Identity("office"), Identity("tunnel")
    provide(office, identities[0], shop=identities[1])
    ports = f"ports = {{ shop = {tunnel_port} }}"
    office.configure(tables(port, name="shop", address=shop.address, more=ports))
    shop.configure(f'[hosts]\noffice = "{entrance}"\n')
    accepts = identities[1].context(tmp_path / "a.pem", server_side=True, trusts=identities[0])
    dials = identities[1].context(tmp_path / "d.pem", server_side=False, trusts=identities[0])
    inwards = Tunnel(
        (shop.address, tunnel_port),
        (shop.address, shop.session_port),
        accepts=accepts,
        # Order acknowledgments go back to where messages come from: into the other tunnel.
        source=entrance,
    )
    outwards = Tunnel(
        (entrance, shop.session_port), (office.address, port), dials=dials, source=shop.address
    )
    with (
        inwards.running(),
        outwards.running(),
        running(office, shop),
        office.connect() as here,
        shop.connect() as there,
    ):
        for manager in (here, there):
            manager.create_queue(QUEUE, transactional=True)
        send_in_transactions(here, shop.queue(QUEUE), bodies(0, COUNT))
        send_in_transactions(there, rf"DIRECT=OS:office\{QUEUE}", bodies(1000, COUNT))
        assert receive(there, COUNT) == bodies(0, COUNT)
        assert receive(here, COUNT) == bodies(1000, COUNT)
        wait_for(
            lambda: (
                not waiting_count(here, shop.queue(QUEUE))
                and not waiting_count(there, rf"DIRECT=OS:office\{QUEUE}")
            ),
            otherwise=lambda: explanations(here, there),
        )
        assert inwards.count
        assert outwards.count


def start(
    folder: Path, address: str, ports: tuple[int, int], rule: PeerRule, log: list[str]
) -> ServerThread:
    config = ServerConfig(
        name=folder.name.upper(),
        data=str(folder),
        address=address,
        api_port=0,
        api_socket="none",
        session_port=ports[0],
        ping_port=ports[0],
        parameters=TransferConfig(
            retry_connect_ms=100,
            resend_first_s=1,
            order_ack_max_delay_s=1,
            peers=PeerPolicy(rules=(rule,)),
        ),
        session_tls=SessionTlsTable(
            certificate="own.pem", peer_certificates="peers", port=ports[1], required=True
        ),
    )
    return ServerThread(config, store=MemoryStore(), log=EventLog("text", "info", log.append))


def test_certificates_are_replaced_while_messages_flow_and_none_is_lost_or_comes_twice(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(session_tls, "TLS_FILES_LOOK_MS", 50)
    here, there = "127.0.0.2", "127.0.0.3"
    ports = free_port(here, there), free_port(here, there)
    office, shop = tmp_path / "office", tmp_path / "shop"
    old, new, logs = {}, {}, {office: [], shop: []}
    for folder in (office, shop):
        (folder / "peers").mkdir(parents=True)
        old[folder], new[folder] = Identity(folder.name), Identity(folder.name)
        old[folder].save(folder / "own.pem")
    pinned = {office: shop / "peers" / "office.pem", shop: office / "peers" / "shop.pem"}
    rules = {
        office: PeerRule(name="shop", addresses=(there,), tls=True),
        shop: PeerRule(name="office", addresses=(here,), tls=True),
    }
    replace(pinned, old)
    with (
        start(office, here, ports, rules[office], logs[office]) as first,
        start(shop, there, ports, rules[shop], logs[shop]) as second,
        openmsmq.connect(f"{here}:{first.port}") as sender,
        openmsmq.connect(f"{there}:{second.port}") as receiver,
    ):
        receiver.create_queue(QUEUE, transactional=True)
        done = threading.Event()
        sent: list[bytes] = []

        def flow() -> None:
            while not done.is_set():
                batch = bodies(len(sent), 10)
                send_in_transactions(sender, rf"DIRECT=TCP:{there}\{QUEUE}", batch)
                sent.extend(batch)

        def have_noticed(times: int) -> bool:
            found = [
                sum(" session-certificate-changed " in line for line in it) for it in logs.values()
            ]
            return all(count >= times for count in found)

        flowing = threading.Thread(target=flow)
        flowing.start()
        try:
            received = receive(receiver, 100)
            replace(pinned, old, new)
            wait_for(lambda: have_noticed(1))
            received += receive(receiver, 100)
            for folder, identity in new.items():
                identity.save(folder / "own.pem")
            wait_for(lambda: have_noticed(2))
            received += receive(receiver, 100)
            # Sessions that were opened with an old one end.
            replace(pinned, new)
            wait_for(lambda: have_noticed(3))
            received += receive(receiver, 500)
        finally:
            done.set()
            flowing.join(30)
        received += receive(receiver, len(sent) - len(received))
        assert received == bodies(0, len(sent))
        with pytest.raises(openmsmq.ReceiveTimeout):
            receiver.queue(QUEUE).receive(timeout=0)
    cut = [line for lines in logs.values() for line in lines if " session-cut " in line]
    assert cut
    assert all("its certificate is no longer trusted" in line for line in cut)
    assert not [line for lines in logs.values() for line in lines if " error " in line]


def replace(files: dict[Path, Path], *identities: dict[Path, Identity]) -> None:
    """Write the certificates of each into the file that others have for it, as a whole."""
    for folder, file in files.items():
        draft = file.with_suffix(".new")
        draft.write_text("".join(each[folder].pem for each in identities))
        draft.replace(file)
