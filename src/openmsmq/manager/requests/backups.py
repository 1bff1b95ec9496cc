"""What operators ask about back-ups: the driver makes them, and tells how far they are."""

from __future__ import annotations

from typing import Final

from openmsmq.api import messages as api
from openmsmq.api.program import BackupPhase
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.outputs import BackUp, BackupProgress
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InvalidParameter, MsmqError, SharingViolation

DIRECTORY_MAX_CHARACTERS: Final = 1024
"""The longest path of a back-up. [ours]"""


class BackupRequests:
    """Lets one back-up be made at a time."""

    def __init__(self, base: Foundation, replies: Replies) -> None:
        self._outputs = base.outputs
        self._replies = replies
        self._number = 0
        self._directory = ""
        self._told = BackupProgress(BackupPhase.NONE)
        self._begun_time_s = self._ended_time_s = 0
        self._waiting: tuple[int, int] | None = None
        """Who waits for its beginning: connection and call."""

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.BeginBackup, self.begin)
        handlers.add(api.GetBackup, self.get)

    def begin(self, state: Connection, call: int, request: api.BeginBackup, now: Instant) -> None:
        """Have a back-up made; answered when the driver has begun."""
        directory = request.directory
        if not directory.startswith("/") or "\0" in directory:
            raise InvalidParameter(
                f"{directory!r} is no absolute path: name a directory on the computer of the queue "
                "manager, from the root on"
            )
        if len(directory) > DIRECTORY_MAX_CHARACTERS:
            raise InvalidParameter(f"a path has at most {DIRECTORY_MAX_CHARACTERS} characters")
        if not self._told.phase.is_over:
            raise SharingViolation(
                f"a back-up into {self._directory} is under way: wait until it is done"
            )
        self._number += 1
        self._directory = directory
        self._told = BackupProgress(BackupPhase.STARTING)
        self._begun_time_s, self._ended_time_s = now.unix_s, 0
        self._waiting = state.id, call
        self._outputs.append(BackUp(directory))

    def get(self, state: Connection, call: int, _: api.GetBackup, _now: Instant) -> None:
        """Tell how far the last back-up has come."""
        self._replies.answer(state.id, call, self._state())

    def told(self, progress: BackupProgress, now: Instant) -> None:
        """Note what the driver tells of the back-up."""
        if progress.phase is BackupPhase.COPYING and self._told.phase is BackupPhase.STARTING:
            self._begun_time_s = now.unix_s
        self._told = progress
        if progress.phase.is_over:
            self._ended_time_s = now.unix_s
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        if progress.error is not None:
            self._replies.fail(*waiting, progress.error)
        else:
            self._replies.answer(*waiting, self._state())

    def _state(self) -> api.BackupState:
        told = self._told
        return api.BackupState(
            number=self._number,
            directory=self._directory,
            state=told.phase.value,
            copied_bytes=told.copied_bytes,
            total_bytes=told.total_bytes,
            begun_time_s=self._begun_time_s,
            ended_time_s=self._ended_time_s,
            problem="" if told.error is None else _sentence(told.error),
        )


def _sentence(error: MsmqError) -> str:
    return error.detail or error.name
