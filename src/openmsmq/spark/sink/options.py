"""The options of writing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from openmsmq.spark.errors import BadOption
from openmsmq.spark.options import CONNECTION_OPTIONS, OptionReader, Place


class SinkOptions(msgspec.Struct, frozen=True):
    """Where rows go as messages, and from which columns their properties come."""

    place: Place
    queue: str
    query: str
    columns: dict[str, str]


PROPERTIES: Final = (
    "body",
    "label",
    "priority",
    "correlation_id",
    "response_queue",
    "admin_queue",
    "acknowledge",
    "application_tag",
    "body_type",
    "extension",
    "time_to_reach_queue_s",
    "time_to_be_received_s",
    "journal_on_failure",
    "journal_on_success",
    "dead_letter_queue",
)
"""Properties of a message that a column can give."""

SINK_OPTIONS: Final = {
    **CONNECTION_OPTIONS,
    "queue": "The transactional queue, by path name or format name, to which messages are sent.",
    "query": "Names what is written, which then is written once; by default the id of the query.",
    **{
        name: f"The column that gives {name}; by default the one of this name, if there is one."
        for name in PROPERTIES
    },
}
"""The options of writing, for the guides."""


def read_sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Read the options of a sink; raises `BadOption`."""
    given = OptionReader(options, SINK_OPTIONS)
    place = given.place()
    if len(place.addresses) != 1:
        raise BadOption("qm", "names several queue managers: messages are sent through one")
    queue = given.text("queue")
    if not queue:
        raise BadOption("queue", r"is missing: name a queue, such as private$\results")
    columns = {name: given.text(name) for name in PROPERTIES if given.text(name)}
    return SinkOptions(place, queue, given.text("query"), columns)
