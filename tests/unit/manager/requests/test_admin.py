"""The names of queues: from one kind to another, without a directory."""

from __future__ import annotations

import pytest
from hypothesis import given

from openmsmq.api import messages as api
from openmsmq.model.names import DirectFormatName, LocalQueueName, PathName
from tests.strategies import names
from tests.unit.manager.office import LEDGER, ORDERS, Office

ONE = "01020304-0506-0708-090a-0b0c0d0e0f10"


@pytest.fixture(scope="module")
def office() -> Office:
    return Office()


@pytest.mark.parametrize(
    ("name", "path_name", "format_name"),
    [
        (ORDERS, r"ALPHA\private$\orders", r"DIRECT=OS:ALPHA\PRIVATE$\orders"),
        (rf".\{ORDERS}", r"ALPHA\private$\orders", r"DIRECT=OS:ALPHA\PRIVATE$\orders"),
        (
            rf"direct=os:alpha\{ORDERS};journal",
            r"ALPHA\private$\orders;journal",
            r"DIRECT=OS:ALPHA\PRIVATE$\orders;JOURNAL",
        ),
        ("system$;deadxact", r"ALPHA\system$;deadxact", r"DIRECT=OS:ALPHA\SYSTEM$;DEADXACT"),
        (r"beta\private$\a", r"beta\private$\a", r"DIRECT=OS:beta\PRIVATE$\a"),
        (r"DIRECT=TCP:10.0.0.1\a", r"10.0.0.1\a", r"DIRECT=TCP:10.0.0.1\a"),
    ],
)
def test_a_name_is_translated_both_ways(
    office: Office, name: str, path_name: str, format_name: str
) -> None:
    found = office.ok(api.GetNames(name))
    assert (found.path_name, found.format_name) == (path_name, format_name)
    assert office.ok(api.GetNames(found.format_name)) == found


def test_a_queue_here_has_a_name_by_number_too(office: Office) -> None:
    manager = office.driver.manager.identifier
    for name, suffix in ((ORDERS, ""), (ORDERS + ";journal", ";JOURNAL")):
        found = office.ok(api.GetNames(name))
        assert found.private_name == f"PRIVATE={manager}\\10{suffix}"
        assert office.ok(api.GetNames(found.private_name)) == found
    system = office.ok(api.GetNames("system$;journal"))
    assert system.private_name == f"MACHINE={manager};JOURNAL"
    assert office.ok(api.GetNames(system.private_name)) == system
    office.open(ORDERS + ";sub")
    assert office.ok(api.GetNames(ORDERS + ";sub")).private_name == ""


@pytest.mark.spec("MQMQ-2.2.18.1.5.1-02", "MQMQ-2.2.18.1.7.2-04")
def test_no_two_private_queues_ever_have_one_number(office: Office) -> None:
    def number(name: str) -> str:
        return str(office.ok(api.GetNames(name)).private_name)

    seen = [number(ORDERS), number(LEDGER)]
    for name in (r"private$\a", r"private$\b", r"private$\a"):
        office.ok(api.CreateQueue(name))
        seen.append(number(name))
        office.ok(api.DeleteQueue(name))
        office.restart()
    assert len(set(seen)) == len(seen) == 5


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (r"a\b\c;d;e", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        ("DIRECT=nonsense", "MQ_ERROR_ILLEGAL_FORMATNAME"),
        ("PUBLIC=nonsense", "MQ_ERROR_ILLEGAL_FORMATNAME"),
        (r"private$\no", "MQ_ERROR_QUEUE_NOT_FOUND"),
        (r"DIRECT=OS:alpha\private$\no", "MQ_ERROR_QUEUE_NOT_FOUND"),
        ("public", "MQ_ERROR_NO_DS"),
        (r"beta\public", "MQ_ERROR_NO_DS"),
        (f"PUBLIC={ONE}", "MQ_ERROR_NO_DS"),
        (f"PRIVATE={ONE}\\1", "MQ_ERROR_NO_DS"),
        (f"MACHINE={ONE};JOURNAL", "MQ_ERROR_NO_DS"),
        (f"DL={ONE}", "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
        ("DIRECT=HTTP://beta/msmq/a", "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
    ],
)
def test_a_name_that_cannot_be_translated_says_why(office: Office, name: str, error: str) -> None:
    assert office.error(api.GetNames(name)) == error


def is_elsewhere(path: PathName) -> bool:
    """Whether a path name names no public queue, and one on another computer."""
    here = path.is_local or path.computer.upper() == "ALPHA"
    public = isinstance(path.queue, LocalQueueName) and not path.queue.private
    # What has an equals sign is taken for a format name.
    return not here and not public and "=" not in str(path)


@given(path=names.path_names().filter(is_elsewhere))
def test_a_private_queue_elsewhere_needs_no_directory(office: Office, path: PathName) -> None:
    found = office.ok(api.GetNames(str(path)))
    assert found.path_name == str(path)
    assert found.format_name == str(DirectFormatName.from_path(path))


def test_a_name_asked_for_creates_nothing(office: Office) -> None:
    before = office.ok(api.ListQueues(everything=True))
    office.error(api.GetNames(ORDERS + ";other"))
    assert office.ok(api.ListQueues(everything=True)) == before
