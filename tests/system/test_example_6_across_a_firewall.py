"""Business to business across a firewall, step by step. [MQOD 3.6]

A manufacturer orders at a supplier. Between them is nothing but HTTPS, and on either side a proxy
where TLS ends: the order, its acknowledgments and the response go through both.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.model.message import AckRequest, MessageClass
from tests.crash.test_http_crash import ADDRESSES, Process
from tests.runtime.proxy import why_not
from tests.runtime.raw_client import wait_until
from tests.runtime.session_certificates import Identity

ORDERS = r"private$\orders"
RESPONSES = r"private$\responses"
ACKNOWLEDGMENTS = r"private$\acknowledgments"

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.mark.spec("MQOD-3.6-01")
def test_business_to_business_across_a_firewall(tmp_path: Path) -> None:
    authority = Identity("Authority", is_authority=True)
    manufacturer, supplier = (Process(name, tmp_path, authority) for name in ADDRESSES)
    with (
        manufacturer.running(tmp_path),
        supplier.running(tmp_path),
        manufacturer.connect() as here,
        supplier.connect() as there,
    ):
        # Initially: the order queue is at the supplier, the two others at the manufacturer.
        there.create_queue(ORDERS, transactional=True)
        here.create_queue(RESPONSES, transactional=True)
        here.create_queue(ACKNOWLEDGMENTS)
        # 1-2: the order is sent in a transaction, and goes over HTTPS to the supplier.
        with here.transaction() as transaction:
            sent = here.queue(supplier.url(ORDERS)).send(
                "ten engines",
                transaction=transaction,
                admin_queue=manufacturer.url(ACKNOWLEDGMENTS),
                response_queue=manufacturer.url(RESPONSES),
                acknowledge=AckRequest.POSITIVE_RECEIVE,
            )
        # 3 and 6: it is received and answered in a transaction.
        with there.transaction() as transaction:
            order = there.queue(ORDERS).receive(timeout=30, transaction=transaction)
            assert order.body == "ten engines"
            there.queue(str(order.response_queue)).send(
                "confirmed", correlation_id=order.id, transaction=transaction
            )
        # 4-5: the supplier's queue manager has acknowledged it.
        acknowledgment = here.queue(ACKNOWLEDGMENTS).receive(timeout=30)
        assert acknowledgment.message_class == MessageClass.ACK_RECEIVE
        assert acknowledgment.correlation_id == sent.to_bytes()
        # 7-8: the response has come over HTTPS, and is received in a transaction.
        with here.transaction() as transaction:
            response = here.queue(RESPONSES).receive(timeout=30, transaction=transaction)
        assert (response.body, response.correlation_id) == ("confirmed", order.id.to_bytes())
        # In the end everything is as in the beginning: nothing is in a queue, or on the way.
        assert there.queue(ORDERS).count() == 0
        assert here.queue(RESPONSES).count() == here.queue(ACKNOWLEDGMENTS).count() == 0
        for manager in (here, there):
            wait_until(
                lambda manager=manager: (
                    not any(queue.message_count for queue in manager.outgoing())
                ),
                30,
            )
