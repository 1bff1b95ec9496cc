"""Posts to a public queue of a queue manager in a domain: LDAP says whether it may take them."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest

import openmsmq
from openmsmq.model.identity import Guid, MessageId
from openmsmq.runtime.config.doors.http_table import HttpTable
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.wire.srmp.compound import Compound, write_compound
from openmsmq.wire.srmp.envelope import Envelope, Msmq
from openmsmq.wire.srmp.writing import write_envelope
from tests.directory.domain import COMPUTERS, Domain
from tests.runtime.computers import wait_for
from tests.runtime.http_peer import port_of, raw, statuses
from tests.runtime.scripted_engine import free_port
from tests.server_thread import ServerThread

pytestmark = [pytest.mark.directory, pytest.mark.xdist_group("samba")]

ADDRESS = "127.0.0.43"
PEER = Guid(bytes(range(16)))
NEVER_S = 0x7FFFFFFF


def post(number: int) -> bytes:
    """A post to the queue `orders`."""
    envelope = Envelope(
        to=f"http://{ADDRESS}/msmq/orders",
        sent_s=1_700_000_000,
        id=MessageId(PEER, number),
        msmq=Msmq(0, 3, 0, PEER, NEVER_S),
    )
    kind, content = write_compound(Compound(write_envelope(envelope), b"order"), PEER, 1)
    head = (
        f"POST /msmq/orders HTTP/1.1\r\nHost: {ADDRESS}\r\nContent-Type: {kind}\r\n"
        f'Content-Length: {len(content)}\r\nSOAPAction: "MSMQMessage"\r\nConnection: close\r\n\r\n'
    )
    return head.encode() + content


@pytest.mark.spec("MQSRM-2.3-01")
@pytest.mark.timeout(120)
def test_what_ldap_says_of_a_queue_decides_what_comes_in(domain: Domain, tmp_path: Path) -> None:
    domain.add_computer("WEBSHOP")
    port = free_port(ADDRESS)
    server = ServerConfig(
        name="WEBSHOP",
        data=str(tmp_path / "WEBSHOP"),
        address=ADDRESS,
        api_port=0,
        api_socket="none",
        site="SiteA",
        qualified_name="webshop.mq.test",
        directory_poll_s=1,
        session_port=port,
        ping_port=port,
        transfer=True,
        http=HttpTable(enabled=True, port=0, queues=("*",)),
        active_directory=msgspec.to_builtins(domain.config) | domain.as_user("WEBSHOP$@mq.test"),
    )
    numbers = itertools.count(1)
    with (
        ServerThread(server) as running,
        openmsmq.connect(f"{running.host}:{running.port}") as manager,
    ):

        def status() -> int:
            """Post something; gives the status of the answer."""
            answer = raw(port_of(running), post(next(numbers)), host=ADDRESS)
            (found,) = statuses(answer)
            return found

        assert status() == 400
        manager.create_queue(r".\orders")
        assert status() == 200
        # An administrator of the domain demands signatures, which no post has.
        entry = f"CN=msmq,CN=WEBSHOP,{COMPUTERS}"
        (queue,) = domain.look_below(entry, "(objectClass=mSMQQueue)")
        domain.replace(queue, mSMQAuthenticate="TRUE")
        wait_for(lambda: status() == 400)
        domain.replace(queue, mSMQAuthenticate="FALSE")
        wait_for(lambda: status() == 200)
        domain.delete(queue)
        wait_for(lambda: status() == 400)
