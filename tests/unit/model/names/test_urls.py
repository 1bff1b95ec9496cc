"""URLs of queues: which paths stand for which queues, and that nothing else has one."""

from __future__ import annotations

import pytest

from openmsmq.model.names.paths import PathName
from openmsmq.model.names.urls import UrlMap

MAP = UrlMap((r"private$\orders*", "Public"), {"/Shop/Orders": r"private$\till"})


@pytest.mark.parametrize(
    ("path", "queue"),
    [
        ("/msmq/private$/orders", r"private$\orders"),
        ("/MSMQ/PRIVATE$/Orders-2", r"private$\Orders-2"),
        (r"/msmq/private$\orders", r"private$\orders"),
        ("/msmq/public", "public"),
        ("/shop/orders", r"private$\till"),
        ("/msmq/private$/order_queue$", r"private$\order_queue$"),
        ("/msmq/private$/bills", None),
        ("/msmq/orders", None),
        ("/msmq/private$/orders;journal", None),
        ("/msmq/private$/orders;part", None),
        ("/msmq/system$;deadletter", None),
        ("/msmq/private$/till", None),
        ("/msmq/private$/orders/more", None),
        ("/msmq/../msmq/private$/orders", None),
        ("/msmq/", None),
        ("/msmq", None),
        ("/private$/orders", None),
        ("/shop/orders/", None),
    ],
)
def test_a_path_stands_for_a_queue_or_for_nothing(path: str, queue: str | None) -> None:
    assert MAP.queue(path) == queue


def test_a_queue_has_a_url_if_a_path_below_msmq_stands_for_it() -> None:
    for name, allows in (
        (r"alpha\private$\Orders-2", True),
        (r"alpha\private$\order_queue$", True),
        (r"alpha\private$\till", False),
        (r"alpha\private$\orders;journal", False),
    ):
        assert MAP.allows(PathName.parse(name).queue) is allows, name


def test_without_an_operators_word_nothing_has_a_url() -> None:
    empty = UrlMap((), {})
    assert not empty
    for path in ("/msmq/private$/orders", "/msmq/private$/order_queue$", "/"):
        assert empty.queue(path) is None
