"""What operators ask about sequences that other queue managers send here, a page at a time."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.incoming.incoming_sequences import IncomingSequences
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.replies import Replies
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InvalidParameter
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.limits import (
    QUEUE_FILTER_MAX_CHARACTERS,
    SEQUENCE_PAGE_MAX_COUNT,
    SEQUENCES_LOOKED_AT_MAX_COUNT,
)
from openmsmq.model.names.parts import fold
from openmsmq.storage.records import INCOMING_KEY_BYTES, IncomingRecord, source_of


class SequenceRequests:
    """Shows incoming sequences."""

    def __init__(self, sequences: IncomingSequences, copy: DirectoryCopy, replies: Replies) -> None:
        self._sequences = sequences
        self._copy = copy
        self._replies = replies

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.PageIncomingSequences, self.page_sequences)

    def page_sequences(
        self, state: Connection, call: int, request: api.PageIncomingSequences, _: Instant
    ) -> None:
        """Show the next sequences that fit, of so many as are looked at for one page."""
        if not 0 < request.limit <= SEQUENCE_PAGE_MAX_COUNT:
            raise InvalidParameter(
                f"a page of {request.limit} sequences: ask for 1 to {SEQUENCE_PAGE_MAX_COUNT}"
            )
        if len(request.after) not in (0, INCOMING_KEY_BYTES):
            raise InvalidParameter("this is no place where a page of sequences has ended")
        if len(request.filter) > QUEUE_FILTER_MAX_CHARACTERS:
            raise InvalidParameter(
                f"a filter of {len(request.filter)} characters: "
                f"{QUEUE_FILTER_MAX_CHARACTERS} are the most"
            )
        wanted = fold(request.filter)
        looked_at = self._sequences.after(request.after, SEQUENCES_LOOKED_AT_MAX_COUNT)
        found: list[api.IncomingSequenceStatus] = []
        after = b""
        for place, (key, record) in enumerate(looked_at):
            shown = self._shown(Guid(source_of(key)), record)
            if _fits(shown, wanted) and (shown.rejected_count or not request.only_rejected):
                found.append(shown)
            is_last = place + 1 == len(looked_at)
            if len(found) == request.limit or (
                is_last and len(looked_at) == SEQUENCES_LOOKED_AT_MAX_COUNT
            ):
                after = key
                break
        reply = api.IncomingSequencePage(found, self._sequences.count, after)
        self._replies.answer(state.id, call, reply)

    def _shown(self, source: Guid, record: IncomingRecord) -> api.IncomingSequenceStatus:
        known = self._copy.image.managers.get(source)
        return api.IncomingSequenceStatus(
            manager=bytes(source),
            name="" if known is None else known.computer_name,
            address=record.place or record.seen_at,
            destination=record.destination,
            sequence=record.sequence,
            number=record.number,
            rejected_count=record.rejected_count,
            since_s=SequenceId.from_int(record.sequence).timestamp,
            last_time_s=record.last_access_time_s,
        )


def _fits(shown: api.IncomingSequenceStatus, wanted: str) -> bool:
    return not wanted or any(
        wanted in fold(text)
        for text in (shown.destination, shown.name, shown.address, str(Guid(shown.manager)))
    )
