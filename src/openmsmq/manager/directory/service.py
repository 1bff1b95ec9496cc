"""The directory in a queue manager: kept up to date, served to others, changed. [MQDMPR 3.1.7.1.18]

A queue manager that has the original changes it itself. One that has a copy asks for changes at
intervals, and hands changes of its own to the directory; both are outputs that the driver carries
out. While the directory cannot be reached everything that the copy knows works on, what would
change the directory fails, and it is tried again at intervals. [MQOD 2.7.4]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from openmsmq.directory.limits import DIRECTORY_CALLS_MAX_COUNT, DIRECTORY_CHANGES_MAX_COUNT
from openmsmq.directory.rules import check
from openmsmq.manager.directory.calls import Done, Owners, Refused
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.directory.own_object import OwnObject
from openmsmq.manager.directory.rights import with_rights_of_their_kind
from openmsmq.manager.outputs import AskDirectory, ChangeDirectory
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.directory import (
    NOWHERE,
    Change,
    DirectoryChanges,
    DirectoryRole,
    ObjectKind,
    Position,
    Removal,
)
from openmsmq.model.errors import InsufficientResources, MsmqError, NoDirectory
from openmsmq.model.identity import GUID_BYTES, Guid
from openmsmq.model.topology import (
    QueueManagerInfo,
)

HINT_PAUSE_MS: Final = 1_000
"""Pause between an answer and the next question, if strangers bring it about. [ours]"""

MOVED_PAUSE_MS: Final = 100
"""The same, if the directory itself says that it has changed: many changes make one question.
[ours]"""

CHANGE_NUMBER_MAX: Final = (1 << 62) - 1
"""The highest number of a change. A copy that becomes the original goes on counting from there."""


class DirectoryService:
    """Knows the directory, asks it, and changes it."""

    def __init__(
        self,
        base: Foundation,
        copy: DirectoryCopy,
        ourselves: OwnObject,
        owners: Owners,
    ) -> None:
        self._config = base.config
        self._role = base.config.directory.role
        self.copy = copy
        self._counters = base.counters
        self._rng = base.rng
        self._ourselves = ourselves
        self._owners = owners
        self._outputs = base.outputs
        self.problem = ""
        """Why the directory could not be asked, or does not know us; empty while all is well."""
        self.news: list[list[Change]] = []
        """Real changes that the queue manager has not heeded yet; an empty list says that a copy
        that was in doubt is up to date."""
        self._calls: dict[int, tuple[Done, Refused]] = {}
        self._held: list[tuple[tuple[Change, ...], Done, Refused]] = []
        """Changes that wait until the directory knows this queue manager."""
        self._last_ticket = 0
        self._asked: Position | None = None
        """Since when changes were asked for, while the answer is awaited."""
        self._ask_again = False
        self._is_registering = False
        self._registered: QueueManagerInfo | None = None
        """What the directory has taken from us since it answered last."""
        self._is_hinted = False
        """Whether somebody has said since the last question that something has changed."""
        self._hint_pause_ms = HINT_PAUSE_MS
        self._has_doubts = False
        """Whether somebody waits to hear that the copy is up to date."""
        self._answered_ms = base.started.ticks_ms - HINT_PAUSE_MS
        self._ask_at_ms: int | None = None
        self._waiting: list[tuple[Done, Refused]] = []
        if self._role is DirectoryRole.COPY:
            self._ask_at_ms = base.started.ticks_ms

    @property
    def role(self) -> DirectoryRole:
        """What this queue manager has of a directory."""
        return self._role

    def open(self) -> None:
        """Make a new directory if this queue manager is to have one and has none yet.

        One that had a copy until now goes on from there. Where we are is written again each time:
        nobody else would.
        """
        if self._role is not DirectoryRole.ORIGINAL:
            return
        if not self.copy.is_original:
            first = self._ourselves.first_objects() if self.copy.position == NOWHERE else []
            self.copy.found(Guid(self._rng.randbytes(16)), first)
            self.news.append(list(self.copy.image))
        self._register_here()

    def _register_here(self) -> None:
        """Let the original know us as we are."""
        self.problem = self._ourselves.problem()
        wanted = None if self.problem else self._ourselves.wanted()
        if wanted is not None:
            self.news.append(self.copy.write((wanted,)))

    # Asking.

    def refresh(self, done: Done, refused: Refused, now: Instant) -> None:
        """Bring the copy up to date now."""
        self._require_directory()
        if self._role is DirectoryRole.ORIGINAL:
            done((), now)
            return
        if len(self._waiting) >= DIRECTORY_CALLS_MAX_COUNT:
            raise InsufficientResources(
                f"{DIRECTORY_CALLS_MAX_COUNT} calls wait for the directory already"
            )
        self._waiting.append((done, refused))
        self.ask_soon()

    def ask_soon(self) -> None:
        """Something may have changed: ask as soon as no answer is awaited."""
        if self._asked is not None:
            self._ask_again = True
        elif self._role is DirectoryRole.COPY:
            self._ask()

    def hint(self, now: Instant, pause_ms: int = HINT_PAUSE_MS) -> None:
        """Somebody says that something has changed: ask, but not as often as anybody may say so."""
        self._is_hinted = True
        if not self.problem:
            self._hint_pause_ms = min(self._hint_pause_ms, pause_ms)
        self._heed_hint(now)

    def _heed_hint(self, now: Instant) -> None:
        # What was said while an answer was awaited may not be in it.
        if self._is_hinted and self._ask_at_ms is not None:
            due_ms = max(self._answered_ms + self._hint_pause_ms, now.ticks_ms)
            self._ask_at_ms = min(self._ask_at_ms, due_ms)

    def _ask(self) -> None:
        self._asked = self.copy.position
        self._ask_again = self._is_hinted = False
        self._hint_pause_ms = HINT_PAUSE_MS
        self._has_doubts = self._has_doubts or self.copy.is_doubted
        self.copy.ask()
        self._ask_at_ms = None
        self._outputs.append(AskDirectory(self.copy.position))

    def told(self, told: DirectoryChanges, now: Instant) -> None:
        """The directory has answered. What is waited for may come after this answer."""
        problem = _position_problem(told.position)
        if problem:
            self.failed(NoDirectory(problem), now)
            return
        asked, self._asked = self._asked, None
        if asked not in (None, self.copy.position) and not told.is_complete:
            # The disk has refused what brought us to where we asked from.
            self._ask()
            return
        again = self._ask_again
        self._answered_ms = now.ticks_ms
        self._ask_at_ms = now.ticks_ms + self._config.directory.poll_ms
        self._heed_hint(now)
        before = self.copy.position
        real = self.copy.take(told)
        self.copy.answered()
        doubts, self._has_doubts = self._has_doubts, False
        self.problem = self._ourselves.problem()
        if real or doubts:
            self.news.append(_without_losses(real, before, told.position))
        if again:
            self._ask()
        else:
            waiting, self._waiting = self._waiting, []
            for done, _ in waiting:
                done(real, now)
        self._register()
        self._release_held(now)

    def failed(self, error: MsmqError, now: Instant) -> None:
        """The directory could not be asked. [MQDMPR 3.1.4.16]"""
        self._asked = None
        self._ask_again = False
        self._answered_ms = now.ticks_ms
        self._ask_at_ms = now.ticks_ms + self._config.directory.probe_ms
        self._heed_hint(now)
        self.problem = error.detail or str(error)
        waiting, self._waiting = self._waiting, []
        for _, refused in waiting:
            refused(error, now)
        self._release_held(now)

    @property
    def is_settled(self) -> bool:
        """Whether no answer of the directory is awaited."""
        return self._asked is None and not self._calls

    # Who we are to the directory.

    def _register(self) -> None:
        """Publish ourselves, if the directory does not know us as we are."""
        if self.problem or self._is_registering or self._asked is not None:
            return
        wanted = self._ourselves.wanted()
        if wanted is None or wanted == self._registered:
            # One that was taken and not kept is not handed on again before the next question.
            self._registered = None
            return
        self._is_registering = True

        def done(_changes: Sequence[Change], _now: Instant) -> None:
            self._is_registering = False
            self._registered = wanted
            self.ask_soon()

        def refused(error: MsmqError, now: Instant) -> None:
            self._is_registering = False
            self.problem = f"this queue manager could not register itself: {error.detail}"
            self._release_held(now)

        self._hand_on((wanted,), done, refused)

    def publish(self, done: Done, refused: Refused, now: Instant) -> None:
        """Publish ourselves as we are now."""
        wanted = self._ourselves.wanted()
        if wanted is None:
            done((), now)
        else:
            self.write((wanted,), done, refused, now)

    # Changing.

    def write(
        self, changes: tuple[Change, ...], done: Done, refused: Refused, now: Instant
    ) -> None:
        """Change the directory; `done` hears of it when the directory has the changes."""
        self._require_directory()
        require_few_changes(len(changes))
        before = self.copy.image
        if self._role is not DirectoryRole.ORIGINAL:

            def told(changes: Sequence[Change], now: Instant) -> None:
                self._owners.tell_owners(changes, before, now)
                done(changes, now)

            self._hand_on_when_known(changes, told, refused)
            return
        if not self.copy.is_original:
            # The disk had no room for it when we began.
            self.open()
            before = self.copy.image
        changes = with_rights_of_their_kind(changes)
        check(before, changes)
        real = self.copy.write(changes)
        if real:
            self.news.append(real)
            self._owners.tell_owners(real, before, now)
            self._register_here()
        done(changes, now)

    def _hand_on_when_known(
        self, changes: tuple[Change, ...], done: Done, refused: Refused
    ) -> None:
        """Hand changes on, but not before the directory knows who makes them."""
        if self.problem:
            raise NoDirectory(self.problem)
        if len(self._calls) + len(self._held) >= DIRECTORY_CALLS_MAX_COUNT:
            raise InsufficientResources(
                f"{DIRECTORY_CALLS_MAX_COUNT} changes wait for the directory already"
            )
        if self._counters.identifier in self.copy.image.managers:
            self._hand_on(changes, done, refused)
        else:
            self._held.append((changes, done, refused))

    def _release_held(self, now: Instant) -> None:
        if self.problem or self._counters.identifier in self.copy.image.managers:
            held, self._held = self._held, []
            for changes, done, refused in held:
                if self.problem:
                    refused(NoDirectory(self.problem), now)
                else:
                    self._hand_on(changes, done, refused)

    def _hand_on(self, changes: tuple[Change, ...], done: Done, refused: Refused) -> None:
        self._last_ticket += 1
        self._calls[self._last_ticket] = done, refused
        self._outputs.append(ChangeDirectory(self._last_ticket, changes))

    def written(self, ticket: int, changes: Sequence[Change], now: Instant) -> None:
        """The directory has changes of ours."""
        done, _ = self._calls.pop(ticket)
        done(changes, now)
        # Others hear of them by asking; so do we.
        self.ask_soon()

    def refused(self, ticket: int, error: MsmqError, now: Instant) -> None:
        """The directory has refused changes of ours, or could not be reached."""
        _, refused = self._calls.pop(ticket)
        refused(error, now)

    def _require_directory(self) -> None:
        if self._role is DirectoryRole.NONE:
            raise NoDirectory(
                "this queue manager has no directory: start it with --directory-server, or with "
                "--directory and the address of one"
            )

    # Time.

    def wake(self, now: Instant) -> None:
        """Time has passed."""
        due_ms = self.next_wake_ms
        if due_ms is not None and due_ms <= now.ticks_ms:
            self._ask()

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` has something to do."""
        if self._ask_at_ms is None or not self.copy.is_doubted:
            return self._ask_at_ms
        return min(self._ask_at_ms, self._answered_ms + HINT_PAUSE_MS)


def require_few_changes(count: int) -> None:
    """Refuse more changes at once than a directory takes, before any of them is read."""
    if count > DIRECTORY_CHANGES_MAX_COUNT:
        raise InsufficientResources(
            f"{count} changes at once; at most {DIRECTORY_CHANGES_MAX_COUNT}: make fewer at once"
        )


def _without_losses(changes: list[Change], before: Position, after: Position) -> list[Change]:
    """Leave out the queues that are gone because the directory is another one.

    Nobody has removed them: a directory that was made anew or restored from a backup, or a server
    of Active Directory that is behind, does not know them. Their messages must not go with them.
    """
    if before.incarnation == after.incarnation and before.number <= after.number:
        return changes
    return [
        change
        for change in changes
        if not (isinstance(change, Removal) and change.kind is ObjectKind.QUEUE)
    ]


def _position_problem(position: Position) -> str:
    """Say so if a directory cannot be where it says: its answers may be made by others."""
    if not 0 <= position.number <= CHANGE_NUMBER_MAX:
        return (
            f"the directory says that its last change is number {position.number}, which no change "
            "can have"
        )
    if len(position.incarnation) != GUID_BYTES:
        return f"the directory says that it is {position.incarnation.hex()!r}, which is no GUID"
    return ""
