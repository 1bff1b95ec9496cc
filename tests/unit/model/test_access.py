from __future__ import annotations

import pytest

from openmsmq.model.access import ManagerAccess, QueueAccess, SiteAccess


def test_the_rights_on_a_queue_have_the_published_values():
    assert {right.name: int(right) for right in QueueAccess.__members__.values()} == {
        "DELETE_MESSAGE": 0x1,
        "PEEK_MESSAGE": 0x2,
        "WRITE_MESSAGE": 0x4,
        "DELETE_JOURNAL_MESSAGE": 0x8,
        "SET_PROPERTIES": 0x10,
        "GET_PROPERTIES": 0x20,
        "DELETE_QUEUE": 0x10000,
        "GET_PERMISSIONS": 0x20000,
        "CHANGE_PERMISSIONS": 0x40000,
        "TAKE_OWNERSHIP": 0x80000,
        "RECEIVE_MESSAGE": 0x3,
        "RECEIVE_JOURNAL_MESSAGE": 0xA,
        "GENERIC_READ": 0x2002B,
        "GENERIC_WRITE": 0x20024,
        "GENERIC_ALL": 0xF003F,
    }


def test_the_rights_on_a_queue_manager_have_the_published_values():
    assert {right.name: int(right) for right in ManagerAccess.__members__.values()} == {
        "DELETE_DEAD_LETTER_MESSAGE": 0x1,
        "PEEK_DEAD_LETTER_MESSAGE": 0x2,
        "CREATE_QUEUE": 0x4,
        "SET_PROPERTIES": 0x10,
        "GET_PROPERTIES": 0x20,
        "DELETE_JOURNAL_MESSAGE": 0x40,
        "PEEK_JOURNAL_MESSAGE": 0x80,
        "DELETE_MANAGER": 0x10000,
        "GET_PERMISSIONS": 0x20000,
        "CHANGE_PERMISSIONS": 0x40000,
        "TAKE_OWNERSHIP": 0x80000,
        "RECEIVE_DEAD_LETTER_MESSAGE": 0x3,
        "RECEIVE_JOURNAL_MESSAGE": 0xC0,
        "WORLD_RIGHTS": 0x20020,
        "GENERIC_READ": 0x200E3,
        "GENERIC_WRITE": 0x20024,
        "GENERIC_ALL": 0xF00F7,
    }


def test_the_rights_on_a_site_have_the_published_values():
    assert {right.name: int(right) for right in SiteAccess.__members__.values()} == {
        "CREATE_ROUTING_SERVER": 0x1,
        "CREATE_BACKUP_CONTROLLER": 0x2,
        "CREATE_MANAGER": 0x4,
        "SET_PROPERTIES": 0x10,
        "GET_PROPERTIES": 0x20,
        "DELETE_SITE": 0x10000,
        "GET_PERMISSIONS": 0x20000,
        "CHANGE_PERMISSIONS": 0x40000,
        "TAKE_OWNERSHIP": 0x80000,
        "GENERIC_READ": 0x20020,
        "GENERIC_WRITE": 0x20024,
        "GENERIC_ALL": 0xF0037,
    }


@pytest.mark.parametrize("rights", [QueueAccess, ManagerAccess, SiteAccess])
def test_all_rights_together_are_the_generic_all(rights):
    union = rights(0)
    for right in rights:
        union |= right
    assert union == rights.GENERIC_ALL
