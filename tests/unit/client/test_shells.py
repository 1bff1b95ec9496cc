"""Both clients have the same verbs: as methods that wait, and as coroutines."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import openmsmq
from openmsmq import aio

VERBS = {
    "Transaction": """
        abort begin commit prepare
    """,
    "Cursor": """
        close next peek receive
    """,
    "Queue": """
        begin_receive change close complete complete_batch count delete deny end_receive
        fetch_packets fetch_range grant measure move open peek peek_by_correlation_id peek_by_id
        peek_by_lookup_id peek_many properties purge receive receive_by_correlation_id
        receive_by_id receive_by_lookup_id receive_many remove_range reserve reserve_batch
        reset_security revoke security send send_many set_owner set_security survey
        take_ownership
    """,
    "QueueManager": """
        abort_batch caller certificates commit_batch delete_queue deny directory_changes
        encryption_keys epochs exists find_queues forget_query format_name grant has_batch
        in_doubt last_batch names outgoing outgoing_queue path_name pause_outgoing queries
        queues read_directory refresh_directory register_certificate release remove_certificate
        renew_keys resend_outgoing reset_security resolve resume_outgoing revoke security
        set_online set_owner set_security status take_ownership wait_for_directory
        write_directory
    """,
}
"""What programs call: none of these may go."""


def verbs_of(kind: type) -> list[Any]:
    return [inspect.getattr_static(kind, name) for name in VERBS[kind.__name__].split()]


@pytest.mark.parametrize("kind", VERBS)
def test_a_verb_is_a_method_that_waits_or_a_coroutine(kind: str) -> None:
    waiting, awaited = (verbs_of(getattr(module, kind)) for module in (openmsmq, aio))
    assert all(map(inspect.isfunction, [*waiting, *awaited]))
    assert not any(map(inspect.iscoroutinefunction, waiting))
    assert all(map(inspect.iscoroutinefunction, awaited))
    assert [verb.__doc__ for verb in waiting] == [verb.__doc__ for verb in awaited]


@pytest.mark.parametrize("kind", VERBS)
def test_both_clients_have_the_same_names(kind: str) -> None:
    waiting, awaited = (
        {name for name in dir(getattr(module, kind)) if not name.startswith("_")}
        for module in (openmsmq, aio)
    )
    assert waiting == awaited


def test_a_program_may_have_queues_of_its_own() -> None:
    class Counting(openmsmq.Queue):
        def send(self, *_: object, **__: object) -> str:  # type: ignore[override]
            return "counted"

    assert Counting.send is vars(Counting)["send"]
    assert Counting.receive is openmsmq.Queue.receive  # type: ignore[comparison-overlap]
