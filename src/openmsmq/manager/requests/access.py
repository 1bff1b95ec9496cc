"""What applications ask about rights: to see them, to change them, and who they themselves are."""

from __future__ import annotations

from hashlib import md5
from typing import Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.access.given import read_given, require_owner
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.config import DirectoryConfig
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.requests.admin import Administration
from openmsmq.manager.requests.public_queues import PublicQueues
from openmsmq.model.access import QueueAccess
from openmsmq.model.clock import Instant
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.errors import PropertyNotAllowed
from openmsmq.security.access.access import (
    LOCKED,
    MANAGER,
    MANAGER_DEFAULT,
    QUEUE,
    QUEUE_DEFAULT,
)
from openmsmq.security.access.callers import Caller
from openmsmq.security.access.descriptors import BadDescriptor, Descriptor, decode, encode_given
from openmsmq.security.access.sids import ADMINISTRATORS, Sid, is_sid

_CHANGE: Final = int(QueueAccess.CHANGE_PERMISSIONS)
_OWN: Final = int(QueueAccess.TAKE_OWNERSHIP)


class AccessRequests:
    """Shows and changes security descriptors."""

    def __init__(
        self,
        table: QueueTable,
        access: AccessControl,
        admin: Administration,
        public: PublicQueues,
        copy: DirectoryCopy,
        replies: Replies,
        directory: DirectoryConfig,
    ) -> None:
        # Who asks another kind of directory may have neighbours that we did not write.
        self._exact_signatures = (
            directory.role is not DirectoryRole.NONE and directory.publishes_addresses
        )
        self._table = table
        self._access = access
        self._admin = admin
        self._public = public
        self._copy = copy
        self._replies = replies

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.GetSecurity, self.get_security)
        handlers.add(api.SetSecurity, self.set_security)
        handlers.add(api.TakeOwnership, self.take_ownership)
        handlers.add(api.GetCaller, self.get_caller)

    def get_security(
        self, state: Connection, call: int, request: api.GetSecurity, _: Instant
    ) -> None:
        """Show the descriptor of a queue, or of the queue manager."""
        if not request.name:
            shown = api.Security(self._access.manager_security, self._access.manager_has_default)
        else:
            stored = self._secured(request.name).properties.security_descriptor
            shown = api.Security(stored or QUEUE_DEFAULT, not stored)
        self._replies.answer_when_done(state.id, call, shown)

    def set_security(
        self, state: Connection, call: int, request: api.SetSecurity, now: Instant
    ) -> None:
        """Change a descriptor; what of it changes says which right that needs."""
        default = QUEUE_DEFAULT if request.name else MANAGER_DEFAULT
        kind = QUEUE if request.name else MANAGER
        wanted = read_given(request.descriptor or default, kind)
        before = self._current(request.name)
        if not wanted.owner:
            wanted = msgspec.structs.replace(wanted, owner=before.owner)
        changes_owner = wanted.owner != before.owner
        if changes_owner:
            self._require(state.caller, request.name, _OWN)
            require_owner(state.caller, Sid(wanted.owner))
        same_list = wanted == msgspec.structs.replace(before, owner=wanted.owner)
        if not (changes_owner and same_list):
            self._require(state.caller, request.name, _CHANGE)
        self._write(state, call, request.name, wanted, now)

    def take_ownership(
        self, state: Connection, call: int, request: api.TakeOwnership, now: Instant
    ) -> None:
        """Make the caller the owner; administrators own things together."""
        caller = state.caller
        owner = ADMINISTRATORS if caller.is_administrator else caller.user
        before = self._current(request.name)
        wanted = msgspec.structs.replace(before, owner=bytes(owner))
        self._write(state, call, request.name, wanted, now)

    def get_caller(self, state: Connection, call: int, _: api.GetCaller, __: Instant) -> None:
        """Say who the caller is."""
        caller = state.caller
        scopes = None if caller.scopes is None else sorted(each.value for each in caller.scopes)
        shown = api.CallerStatus(
            caller.name,
            bytes(caller.user),
            [bytes(sid) for sid in sorted(caller.sids)],
            scopes,
            list(caller.queues),
            self._exact_signatures,
            caller.owner_name,
        )
        self._replies.answer(state.id, call, shown)

    def user_of(self, certificate: bytes) -> Sid | None:
        """Say for whom the directory has a certificate; None for nobody, or for two at once."""
        digest = md5(certificate, usedforsecurity=False).digest()
        found = {
            user.security_identifier
            for user in self._copy.image.users.values()
            if certificate in user.certificates
            or (not user.certificates and digest in user.certificate_digests)
        }
        valid = [Sid(user) for user in found if is_sid(user)]
        return valid[0] if len(found) == len(valid) == 1 else None

    def _secured(self, name: str) -> LocalQueue:
        queue = self._table.find(name)
        if not queue.can.stand_alone:
            raise PropertyNotAllowed(
                f"{queue.name} has the rights of its queue, or of the queue manager"
            )
        return queue

    def _current(self, name: str) -> Descriptor:
        if not name:
            stored = self._access.manager_security
        else:
            stored = self._secured(name).properties.security_descriptor or QUEUE_DEFAULT
        try:
            return decode(stored)
        except BadDescriptor:
            return LOCKED

    def _require(self, caller: Caller, name: str, rights: int) -> None:
        if name:
            self._access.require_queue(caller, self._secured(name), rights)
        else:
            self._access.require_manager(caller, rights)

    def _write(
        self, state: Connection, call: int, name: str, wanted: Descriptor, now: Instant
    ) -> None:
        made = encode_given(wanted)
        stored = b"" if made == (QUEUE_DEFAULT if name else MANAGER_DEFAULT) else made
        if not name:
            self._access.set_manager_security(stored)
            self._replies.answer_when_done(state.id, call, api.Done())
            return
        queue = self._secured(name)
        properties = msgspec.structs.replace(
            queue.properties, security_descriptor=stored, modified_time_s=now.unix_s
        )
        if queue.is_public:
            self._public.write(state, call, queue, properties, now, api.Done())
            return
        self._admin.change(queue, properties)
        self._replies.answer_when_done(state.id, call, api.Done())
