"""A file of definitions is read as it was written, and what is wrong with one is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.client.operating.definitions import file as definitions
from openmsmq.client.operating.definitions.file import (
    ENTRIES_MAX_COUNT,
    FORMAT,
    BadDefinitions,
    Definitions,
    QueueDefinition,
    descriptor_of,
    read_definitions,
    rights_of,
    write_definitions,
)
from openmsmq.security.access.access import QUEUE, plain
from openmsmq.security.access.descriptors import AccessEntry, Descriptor
from openmsmq.security.access.sids import ADMINISTRATORS, EVERYONE, unix_user

SIDS = st.sampled_from([bytes(sid) for sid in (ADMINISTRATORS, EVERYONE, unix_user(1000))])
ENTRIES = st.builds(AccessEntry, SIDS, st.integers(0, 0xFFFFFFFF), st.booleans(), st.booleans())
DESCRIPTORS = st.builds(
    Descriptor, SIDS, st.just(b"") | SIDS, st.lists(ENTRIES, max_size=5).map(tuple)
)


@given(DESCRIPTORS)
def test_rights_survive_being_written_and_read(descriptor: Descriptor) -> None:
    assert descriptor_of(rights_of(descriptor)) == plain(descriptor, QUEUE)


@given(st.permutations([r"private$\b", "Public", r"private$\A", r"private$\c"]))
def test_the_order_of_a_file_does_not_depend_on_anything(paths: list[str]) -> None:
    queues = [QueueDefinition(path=path) for path in paths]
    written = write_definitions(Definitions(FORMAT, "ALPHA", queues))
    assert [each["path"] for each in json.loads(written)["queues"]] == [
        r"private$\A",
        r"private$\b",
        r"private$\c",
        "Public",
    ]
    assert write_definitions(read_definitions(written)) == written


def reading(**queue: Any) -> Definitions:
    whole = {"format": FORMAT, "queue_manager": "A", "queues": [{"path": "private$\\a", **queue}]}
    return read_definitions(json.dumps(whole).encode())


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ({"path": 7}, "$.queues[0].path"),
        ({"path": "x" * 1000}, "length"),
        ({"path": r"other\private$\a"}, "leave out the computer"),
        ({"path": r"private$\a;journal"}, "come by themselves"),
        ({"path": "system$;deadletter"}, "come by themselves"),
        ({"path": ""}, "''"),
        ({"evil": True}, "unknown field `evil`"),
        ({"label": "x" * 200}, "length"),
        ({"quota_kb": -1}, ">= 0"),
        ({"quota_kb": 0xFFFFFFFF}, "<"),
        ({"privacy": "maximal"}, "none, optional, body"),
        ({"service_type": "x"}, "service_type"),
        ({"base_priority": 1 << 20}, "base_priority"),
        ({"rights": {"entries": None}}, "entries"),
        ({"rights": {"entries": [{"who": "nobody", "rights": []}]}}, "'nobody' is nobody"),
        ({"rights": {"entries": [{"who": "everyone", "rights": ["fly"]}]}}, "'fly' is no right"),
        ({"rights": {"entries": [{"who": "everyone", "rights": ["0xZ"]}]}}, "32 bits"),
        (
            {"rights": {"entries": [{"who": "everyone", "rights": []}] * (ENTRIES_MAX_COUNT + 1)}},
            "length",
        ),
    ],
)
def test_what_is_wrong_with_a_queue_is_told(queue: dict[str, Any], words: str) -> None:
    with pytest.raises(BadDefinitions) as refused:
        reading(**queue)
    assert words in str(refused.value)


def test_a_queue_cannot_be_in_a_file_twice() -> None:
    queues = [{"path": r"private$\a"}, {"path": r".\PRIVATE$\A"}]
    whole = {"format": FORMAT, "queue_manager": "A", "queues": queues}
    with pytest.raises(BadDefinitions, match="twice"):
        read_definitions(json.dumps(whole).encode())


def test_a_file_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_definitions(Definitions(FORMAT, "A", []))
    monkeypatch.setattr(definitions, "DEFINITIONS_MAX_BYTES", len(data))
    assert read_definitions(data).queues == []
    with pytest.raises(BadDefinitions, match="more than"):
        read_definitions(data + b" ")


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_file_or_refused(data: bytes) -> None:
    with pytest.raises(BadDefinitions):
        read_definitions(data)
