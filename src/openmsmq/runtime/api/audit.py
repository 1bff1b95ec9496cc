"""The audit log: who changed what, when, from where, and how it went; and who was refused.

One JSON object a line, in a file that only the server's user can read. When it is full it becomes
`audit.log.1`, and so on, and the oldest one goes. Neither tokens nor messages are ever in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from openmsmq.api.messages import AnyReply, AnyRequest, Failed, Opened, SetSecurity
from openmsmq.model.errors import AccessDenied, MsmqError
from openmsmq.runtime.clocks import read_clocks, timestamp
from openmsmq.runtime.owner_file import open_for_owner
from openmsmq.runtime.start_errors import os_reason
from openmsmq.security.access.callers import Caller
from openmsmq.security.access.descriptors import BadDescriptor, decode
from openmsmq.security.access.rights import MANAGER_WORDS, QUEUE_WORDS, describe

AUDIT_FILE_MAX_BYTES: Final = 16 << 20
"""When the file is longer, the next one is begun."""

AUDIT_FILES_KEPT_COUNT: Final = 8
"""Full files that are kept."""

DENIALS_AUDITED_PER_S: Final = 20
"""Refused calls that are written in a second; the others are counted."""

AUDIT_TEXT_MAX_CHARACTERS: Final = 500
"""Texts of applications are cut to this length."""

_HIDDEN: Final = frozenset({"rows", "units_of_work", "certificate"})
"""Parts of requests that are long or no texts; how long they are is told."""

_GIVEN_RIGHTS: Final = "security"
"""The field of a request with the rights that a new queue is to have."""


class AuditLog:
    """Writes what is to be remembered; without a path it writes nothing."""

    def __init__(
        self,
        path: Path | None,
        failed: Callable[[str], None] = lambda _: None,
        *,
        file_max_bytes: int = AUDIT_FILE_MAX_BYTES,
        files_kept: int = AUDIT_FILES_KEPT_COUNT,
    ) -> None:
        self._path = path
        self._failed = failed
        self._file_max_bytes = file_max_bytes
        self._files_kept = files_kept
        self._file = -1
        self._size = 0
        self._second_s = 0
        self._denials = 0
        self._is_failing = False

    def done(self, caller: Caller, peer: str, request: AnyRequest, on: str, error: str) -> None:
        """Write what somebody has done, or tried to."""
        self._write(
            {
                **_who(caller, peer),
                "action": action_of(type(request)),
                "on": _cut(on),
                "with": facts_of(request),
                "result": error or "done",
            }
        )

    def denied(self, caller: Caller, peer: str, action: str, reason: str) -> None:
        """Write who was refused, or count it: a flood of refusals is no flood of lines."""
        now_s = read_clocks().unix_s
        if now_s != self._second_s:
            left_out = self._denials - DENIALS_AUDITED_PER_S
            if left_out > 0:
                self._write({"action": "denied", "not_written": left_out})
            self._second_s, self._denials = now_s, 0
        self._denials += 1
        if self._denials <= DENIALS_AUDITED_PER_S:
            facts = {"action": action, "result": AccessDenied().name, "reason": _cut(reason)}
            self._write({**_who(caller, peer), **facts})

    def noted(self, action: str, on: str) -> None:
        """Write what the server has noticed by itself."""
        self._write({"action": action, "on": _cut(on), "result": "done"})

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, facts: dict[str, Any]) -> None:
        if self._path is None:
            return
        line = json.dumps({"time": timestamp(), **facts}).encode() + b"\n"
        try:
            if self._file < 0:
                self._open(self._path)
            if self._size and self._size + len(line) > self._file_max_bytes:
                self._turn_over(self._path)
            # One call for one line: a line is there as a whole or not at all.
            self._size += os.write(self._file, line)
            self._is_failing = False
        except OSError as error:
            if not self._is_failing:
                self._failed(f"{self._path}: {os_reason(error)}")
            self._is_failing = True

    def _open(self, path: Path) -> None:
        self._file = open_for_owner(str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._size = os.fstat(self._file).st_size

    def _turn_over(self, path: Path) -> None:
        self.close()
        for number in range(self._files_kept, 0, -1):
            older = path if number == 1 else _numbered(path, number - 1)
            if older.exists():
                older.replace(_numbered(path, number))
        self._open(path)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _who(caller: Caller, peer: str) -> dict[str, Any]:
    return {"who": _cut(caller.name), "sid": str(caller.user), "peer": peer}


def _cut(text: str) -> str:
    if len(text) <= AUDIT_TEXT_MAX_CHARACTERS:
        return text
    return text[:AUDIT_TEXT_MAX_CHARACTERS] + "…"


def action_of(kind: type | None) -> str:
    """Return the name of a kind of request, as the interface has it."""
    config = getattr(kind, "__struct_config__", None)
    return "call" if config is None else str(config.tag)


def facts_of(request: AnyRequest) -> dict[str, Any]:
    """Return what was asked for, as far as it is short."""
    facts: dict[str, Any] = {}
    if isinstance(request, SetSecurity):
        return {"rights": _rights(request.descriptor, bool(request.name))}
    for field in request.__struct_fields__:
        value = getattr(request, field)
        if field == _GIVEN_RIGHTS:
            if value:
                facts["rights"] = _rights(value, True)
        elif field in _HIDDEN:
            facts[f"{field}_count"] = len(value)
        elif isinstance(value, bytes):
            facts[field] = value.hex()[:AUDIT_TEXT_MAX_CHARACTERS]
        elif isinstance(value, str):
            facts[field] = _cut(value)
        elif value is not None:
            facts[field] = value
    return facts


def _rights(descriptor: bytes, is_queue: bool) -> str:
    try:
        wanted = decode(descriptor) if descriptor else None
    except BadDescriptor as error:
        return str(error)
    if wanted is None:
        return "those of a new one"
    return _cut(describe(wanted, QUEUE_WORDS if is_queue else MANAGER_WORDS))


class Watch:
    """What one connection has under way that the audit log is to tell of."""

    def __init__(self, log: AuditLog, caller: Caller, peer: str) -> None:
        self._log = log
        self._caller = caller
        self._peer = peer
        self._calls: dict[int, AnyRequest] = {}
        self._names: dict[int, str] = {}

    def begin(self, call: int, request: AnyRequest) -> None:
        """A call that is watched begins."""
        self._calls[call] = request

    def end(self, call: int, kind: type | None, reply: AnyReply) -> None:
        """A call ends that is watched, or that failed."""
        request = self._calls.pop(call, None)
        if isinstance(reply, Failed) and reply.code == AccessDenied.code:
            self._log.denied(self._caller, self._peer, action_of(kind), reply.detail)
            return
        if isinstance(reply, Opened):
            self._names[reply.handle] = reply.path_name
        elif request is not None:
            error = MsmqError.from_code(reply.code).name if isinstance(reply, Failed) else ""
            self._log.done(self._caller, self._peer, request, self._on(request), error)

    def closed(self, handle: int) -> None:
        """A handle is closed."""
        self._names.pop(handle, None)

    def _on(self, request: AnyRequest) -> str:
        for field in ("name", "path"):
            value = getattr(request, field, None)
            if isinstance(value, str):
                return value or "the queue manager"
        handle = getattr(request, "handle", None)
        if handle is not None:
            return self._names.get(handle, f"handle {handle}")
        return "the queue manager"
