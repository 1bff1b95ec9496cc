"""A connector, with a real queue manager: a program that takes messages to a foreign system."""

from __future__ import annotations

from tests.runtime.computers import neighbours, running, wait_for, waiting_count

CONNECTOR = "CONNECTOR=5a3c7c1e-8b0d-4f7a-9c41-6f2d8e0b9a77"


def test_a_connector_receives_what_others_send_to_a_foreign_computer(tmp_path):
    alpha, gate = neighbours(tmp_path, "ALPHA", "GATE")
    alpha.configure(f'[hosts]\nMAINFRAME = "{gate.address}"')
    gate.configure(f'[connectors]\nMAINFRAME = "{CONNECTOR.partition("=")[2]}"')
    with running(alpha, gate), alpha.connect() as source, gate.connect() as manager:
        target = source.queue(r"MAINFRAME\private$\payroll")
        plain, ordered = manager.queue(CONNECTOR), manager.queue(f"{CONNECTOR};XACTONLY")
        target.send(b"plain", recoverable=True)
        with source.transaction() as transaction:
            target.send(b"ordered", transaction=transaction)
        message = plain.receive(timeout=30)
        assert (message.body_bytes, str(message.destination)) == (
            b"plain",
            r"DIRECT=OS:MAINFRAME\PRIVATE$\payroll",
        )
        with manager.transaction() as transaction:
            assert ordered.receive(timeout=30, transaction=transaction).body_bytes == b"ordered"
        wait_for(lambda: waiting_count(source, str(message.destination)) == 0)
