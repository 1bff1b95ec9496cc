"""Images of a directory: what changes lead to, and what is found in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.directory.codec import decode_object, encode_object
from openmsmq.directory.image import DirectoryImage
from openmsmq.model.directory import DirectoryObject, ObjectKind, Removal, kind_of
from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueKind, QueueProperties
from openmsmq.model.topology import (
    DistributionList,
    EnterpriseInfo,
    QueueManagerInfo,
    RoutingLink,
    Site,
    UserInfo,
)

guids = st.integers(1, 4).map(lambda number: Guid(bytes([number]) * 16))
texts = st.text(max_size=5)
objects: st.SearchStrategy[DirectoryObject] = st.one_of(
    st.builds(EnterpriseInfo, identifier=guids, name=texts),
    st.builds(Site, identifier=guids, name=texts),
    st.builds(RoutingLink, identifier=guids, site1=guids, site2=guids, cost=st.integers(0, 9)),
    st.builds(QueueManagerInfo, identifier=guids, computer_name=texts, sites=st.tuples(guids)),
    st.builds(
        QueueProperties,
        identifier=guids,
        path_name=texts,
        manager=guids,
        kind=st.just(QueueKind.PUBLIC),
    ),
    st.builds(UserInfo, identifier=guids, security_identifier=st.binary(max_size=4)),
    st.builds(DistributionList, identifier=guids, members=st.tuples(texts)),
)
changes = st.one_of(objects, st.builds(Removal, st.sampled_from(ObjectKind), guids))


@given(st.lists(objects), st.lists(changes))
def test_an_image_is_what_its_changes_add_up_to(start, later):
    before = DirectoryImage(start)
    untouched = DirectoryImage(start)
    expected = {(kind_of(value), value.identifier): value for value in start}
    for change in later:
        if isinstance(change, Removal):
            expected.pop((change.kind, change.identifier), None)
        else:
            expected[kind_of(change), change.identifier] = change
    after = before.changed(later)
    assert {(kind_of(value), value.identifier): value for value in after} == expected
    assert len(after) == len(expected)
    assert before == untouched


@given(objects)
def test_objects_survive_being_written_and_read(value):
    assert decode_object(kind_of(value), encode_object(value)) == value


@given(st.sampled_from(ObjectKind), st.binary(max_size=60))
def test_bytes_that_are_no_object_are_refused_in_one_way(kind, data):
    try:
        value = decode_object(kind, data)
    except ValueError:
        return
    assert kind_of(value) is kind


def test_computers_and_queues_are_found_by_either_name_and_in_any_case():
    manager = QueueManagerInfo(
        identifier=Guid(b"m" * 16), computer_name="ALPHA", qualified_computer_name="alpha.example"
    )
    queue = QueueProperties(
        identifier=Guid(b"q" * 16),
        path_name="ALPHA\\Orders",
        manager=manager.identifier,
        kind=QueueKind.PUBLIC,
        label="Orders of today",
        service_type=Guid(b"t" * 16),
    )
    image = DirectoryImage([manager, queue])
    assert image.manager_named("alpha") == image.manager_named("ALPHA.EXAMPLE") == manager
    assert image.queue_at("alpha", "orders") == image.queue_at("Alpha.Example", "ORDERS") == queue
    assert image.queue_at("alpha", "other") is image.queue_at("beta", "orders") is None
    assert image.queues_of(manager.identifier) == [queue]
    assert image.find_queues(label="ORDERS of today", service_type=queue.service_type) == [queue]
    assert image.find_queues(label="orders") == []
    assert image.find_queues(service_type=manager.identifier) == []


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x81\xaaidentifier\xc4\x01x"])
def test_an_object_without_its_identifier_is_none(data):
    with pytest.raises(ValueError, match="not a site"):
        decode_object(ObjectKind.SITE, data)
