"""Messages between computers, as people send and receive them with the commands."""

from __future__ import annotations

from tests.runtime.computers import neighbours, running

PLAIN, LEDGER = r"private$\orders", r"private$\ledger"
KINDS = {
    "express": (PLAIN,),
    "recoverable": (PLAIN, "--recoverable"),
    "transactional": (LEDGER, "--transactional"),
}


def texts(found: list[dict[str, object]]) -> list[object]:
    return [message["text"] for message in found]


def test_all_kinds_of_messages_go_both_ways(tmp_path):
    alpha, beta = neighbours(tmp_path, "ALPHA", "BETA")
    with running(alpha, beta):
        for computer in (alpha, beta):
            with computer.connect() as manager:
                manager.create_queue(PLAIN)
                manager.create_queue(LEDGER, transactional=True)
        for source, target in ((alpha, beta), (beta, alpha)):
            for kind, (path, *flags) in KINDS.items():
                body = f"{kind} from {source.name}"
                source.command("send", target.queue(path), "--body", body, *flags)
        for source, target in ((alpha, beta), (beta, alpha)):
            plain = target.objects("receive", PLAIN, "--count", "2", "--timeout", "30")
            (transactional,) = target.objects("receive", LEDGER, "--timeout", "30")
            found = [*sorted(plain, key=lambda message: message["recoverable"]), transactional]
            assert texts(found) == [f"{kind} from {source.name}" for kind in KINDS]
            assert [message["recoverable"] for message in found] == [False, True, True]
            assert [message["transactional"] for message in found] == [False, False, True]
            assert {message["source_qm"] for message in found} == {source.identifier}
