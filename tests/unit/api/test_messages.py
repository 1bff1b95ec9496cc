"""The sum of all modules of requests leaves none out."""

from __future__ import annotations

import importlib
import pkgutil

import msgspec

from openmsmq import api as package
from openmsmq.api import messages as api


def test_no_request_and_no_reply_is_left_out() -> None:
    for found in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{found.name}")
    defined = {
        kind
        for kind in api.Request.__subclasses__()
        if kind.__module__.startswith(package.__name__)
    }
    assert defined == set(api.REQUESTS)
    assert set(api.Reply.__subclasses__()) == set(api.REPLIES)
    assert all(getattr(api, kind.__name__) is kind for kind in (*api.REQUESTS, *api.REPLIES))


def test_the_interface_has_the_tags_it_had() -> None:
    # A client of another release says these words: none may go or change its meaning.
    assert {kind.__struct_config__.tag for kind in api.REQUESTS} == set(TAGS.split())
    assert msgspec.msgpack.encode(api.Call(1, api.Cancel(7))) == bytes.fromhex(
        "9201 92 a6 63616e63656c 07"
    )


TAGS = """
abort abort-batch begin begin-backup cancel change-directory change-queue close-connection
close-cursor close-queue commit commit-batch complete control-outgoing create-cursor create-queue
delete-queue end-receive fetch-packets fetch-range find find-message find-queues forget-query
get-backup get-batch get-caller get-configuration get-encryption-keys get-epochs get-names get-queue
get-security get-status get-voucher hello list-certificates list-connections list-outgoing
list-queries
list-queues list-sessions list-transactions measure move open-queue page-incoming-sequences
page-queues prepare purge
read-audit read-directory receive refresh-directory register-certificate release reload
remove-certificate remove-range renew-keys reserve resolve seek send send-once set-log-level
set-online
set-security survey take-ownership
"""
