"""Express messages that have gone leave their room behind, however they went."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.model.queue import AccessMode
from tests.transfer.network import Computer, Network

BODY = bytes(200)
ROUNDS = 30
"""Thirty times what fits: a byte in ten that stayed would be noticed."""


def received(shop: Computer, name: str) -> None:
    assert shop.messages(name, take=True)


def purged(shop: Computer, name: str) -> None:
    opened = shop.ok(api.OpenQueue(name, AccessMode.RECEIVE))
    shop.ok_soon(api.Purge(opened.handle))
    shop.ok(api.CloseQueue(opened.handle))


def expired(shop: Computer, _name: str) -> None:
    shop.network.run(20_000)


def deleted(shop: Computer, name: str) -> None:
    shop.ok_soon(api.DeleteQueue(name))
    shop.network.run(1_000)


def moved(shop: Computer, name: str) -> None:
    source = shop.ok(api.OpenQueue(name, AccessMode.RECEIVE)).handle
    target = shop.ok(api.OpenQueue(f"{name};later", AccessMode.MOVE)).handle
    for entry in shop.ok(api.FetchRange(source, 0, 1 << 56)).entries:
        shop.ok(api.Move(source, entry.lookup_id, target))
    received(shop, f"{name};later")


@pytest.mark.parametrize("leave", [received, purged, expired, deleted, moved])
@pytest.mark.parametrize("count", [1, 3], ids=["one", "several at once"])
def test_what_has_gone_takes_no_room(leave: Callable[[Computer, str], None], count: int) -> None:
    shop = Network().manager("SHOP", "127.0.0.2")
    shop.config = ManagerConfig(name="SHOP", quota_kb=4)
    shop.start()
    for number in range(ROUNDS):
        name = rf"private$\q{number}"
        shop.create(name)
        shop.send(name, *[BODY] * count, recoverable=False, time_to_be_received_s=10)
        leave(shop, name)
