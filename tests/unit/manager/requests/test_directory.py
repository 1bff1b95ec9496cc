"""Requests about the directory are refused before they are work."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.directory.limits import DIRECTORY_CHANGES_MAX_COUNT
from tests.unit.manager.office import Office


def test_more_changes_than_are_taken_at_once_are_not_read() -> None:
    office = Office()
    nonsense = api.ObjectRow("nonsense", b"", b"")
    assert office.error(api.ChangeDirectory([nonsense])) != "MQ_ERROR_INSUFFICIENT_RESOURCES"
    refused = office.ask(api.ChangeDirectory([nonsense] * (DIRECTORY_CHANGES_MAX_COUNT + 1)))
    assert isinstance(refused, api.Failed)
    assert refused.detail == "10001 changes at once; at most 10000: make fewer at once"
