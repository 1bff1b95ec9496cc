"""What servers refuse becomes an error of MSMQ that says what to do."""

from __future__ import annotations

import bonsai
import pytest

from openmsmq.model.directory import ObjectKind
from openmsmq.model.errors import (
    AccessDenied,
    DirectoryFailed,
    IllegalPropertyValue,
    MachineNotFound,
    MsmqError,
    NoDirectory,
    QueueExists,
    QueueNotFound,
)
from openmsmq.runtime.active_directory.failures import MACHINE_EXISTS, NOT_MATCHING, failure


class Refused(bonsai.LDAPError):
    def __init__(self, code: int, text: str = "because") -> None:
        super().__init__(text)
        self.code = code


@pytest.mark.spec("MQDMPR-3.1.1.17-01")
@pytest.mark.parametrize(
    ("code", "kind", "error"),
    [
        (-1, None, NoDirectory),
        (-5, None, NoDirectory),
        (52, None, NoDirectory),
        (49, None, AccessDenied),
        (50, ObjectKind.QUEUE, AccessDenied),
        (-2, None, AccessDenied),
        (68, ObjectKind.QUEUE, QueueExists),
        (68, ObjectKind.SITE, DirectoryFailed),
        (32, ObjectKind.QUEUE, QueueNotFound),
        (32, ObjectKind.MANAGER, MachineNotFound),
        (32, ObjectKind.LINK, DirectoryFailed),
        (16, None, IllegalPropertyValue),
        (19, None, IllegalPropertyValue),
        (65, None, IllegalPropertyValue),
        (66, None, DirectoryFailed),
        (53, None, DirectoryFailed),
        (1, None, DirectoryFailed),
    ],
)
def test_each_code_has_its_error(
    code: int, kind: ObjectKind | None, error: type[MsmqError]
) -> None:
    found = failure(Refused(code), "create CN=x", kind)
    assert type(found) is error
    assert "create CN=x" in str(found)


def test_a_queue_manager_that_is_there_is_a_machine_that_exists() -> None:
    assert failure(Refused(68), "create CN=x", ObjectKind.MANAGER).code == MACHINE_EXISTS


def test_the_codes_have_their_names() -> None:
    assert MsmqError.from_code(MACHINE_EXISTS).name == "MQ_ERROR_MACHINE_EXISTS"
    assert MsmqError.from_code(NOT_MATCHING).name == "MQ_ERROR_GUID_NOT_MATCHING"
