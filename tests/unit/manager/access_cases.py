"""Every request with the right that it needs, made from the table of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, get_args

from openmsmq.api import messages as api
from openmsmq.manager.access_rules import RULES, Check
from openmsmq.model.access import ManagerAccess, QueueAccess
from openmsmq.model.errors import AccessDenied
from openmsmq.model.queue import AccessMode
from openmsmq.security.access import MANAGER, QUEUE
from openmsmq.security.descriptors import AccessEntry, Descriptor, encode
from openmsmq.security.sids import ADMINISTRATORS, Sid, unix_user

ALICE = unix_user(70_001)
BOB = unix_user(70_002)
QUEUE_NAME = r"private$\guarded"
ELSEWHERE = r"DIRECT=TCP:127.0.0.99\private$\orders"
REQUESTS = get_args(api.AnyRequest)
"""All requests of the interface."""


class Case(NamedTuple):
    """A request, and the rights without which it is refused."""

    request: api.AnyRequest
    on_queue: int = 0
    on_manager: int = 0

    def __str__(self) -> str:
        tag = type(self.request).__struct_config__.tag
        mode = getattr(self.request, "access", None)
        name = getattr(self.request, "name", "")
        return f"{tag} {'' if mode is None else AccessMode(mode).name} {name}".strip()


SAMPLES: dict[type, tuple[api.AnyRequest, ...]] = {
    api.CreateQueue: (api.CreateQueue(r"private$\another"),),
    api.ChangeQueue: (api.ChangeQueue(QUEUE_NAME, label="changed"),),
    api.DeleteQueue: (api.DeleteQueue(QUEUE_NAME),),
    api.GetQueue: (api.GetQueue(QUEUE_NAME),),
    api.ListQueues: (api.ListQueues(),),
    api.GetNames: (api.GetNames(QUEUE_NAME),),
    api.GetSecurity: (api.GetSecurity(QUEUE_NAME), api.GetSecurity()),
    api.TakeOwnership: (api.TakeOwnership(QUEUE_NAME), api.TakeOwnership()),
    api.Release: (api.Release(QUEUE_NAME),),
    api.ListTransactions: (api.ListTransactions(),),
    api.Resolve: (api.Resolve(bytes(16), commit=True),),
    api.ListOutgoing: (api.ListOutgoing(),),
    api.ControlOutgoing: (api.ControlOutgoing(ELSEWHERE, "pause"),),
    api.SetOnline: (api.SetOnline(online=True),),
    api.ReadDirectory: (api.ReadDirectory(),),
    api.ChangeDirectory: (api.ChangeDirectory([]),),
    api.RefreshDirectory: (api.RefreshDirectory(),),
    api.FindQueues: (api.FindQueues(),),
    api.GetStatus: (api.GetStatus(),),
}
"""Requests whose rights stand in the table."""

OPENINGS = {
    (QUEUE_NAME, AccessMode.RECEIVE): (QueueAccess.RECEIVE_MESSAGE, 0),
    (QUEUE_NAME, AccessMode.PEEK): (QueueAccess.PEEK_MESSAGE, 0),
    (QUEUE_NAME, AccessMode.SEND): (QueueAccess.WRITE_MESSAGE, 0),
    (QUEUE_NAME, AccessMode.MOVE): (QueueAccess.RECEIVE_MESSAGE, 0),
    (f"{QUEUE_NAME};later", AccessMode.RECEIVE): (QueueAccess.RECEIVE_MESSAGE, 0),
    (f"{QUEUE_NAME};later", AccessMode.PEEK): (QueueAccess.PEEK_MESSAGE, 0),
    (f"{QUEUE_NAME};later", AccessMode.MOVE): (QueueAccess.RECEIVE_MESSAGE, 0),
    (f"{QUEUE_NAME};journal", AccessMode.RECEIVE): (QueueAccess.RECEIVE_JOURNAL_MESSAGE, 0),
    (f"{QUEUE_NAME};journal", AccessMode.PEEK): (QueueAccess.PEEK_MESSAGE, 0),
    ("system$;deadletter", AccessMode.RECEIVE): (0, ManagerAccess.RECEIVE_DEAD_LETTER_MESSAGE),
    ("system$;deadletter", AccessMode.PEEK): (0, ManagerAccess.PEEK_DEAD_LETTER_MESSAGE),
    ("system$;deadxact", AccessMode.RECEIVE): (0, ManagerAccess.RECEIVE_DEAD_LETTER_MESSAGE),
    ("system$;deadxact", AccessMode.PEEK): (0, ManagerAccess.PEEK_DEAD_LETTER_MESSAGE),
    ("system$;journal", AccessMode.RECEIVE): (0, ManagerAccess.RECEIVE_JOURNAL_MESSAGE),
    ("system$;journal", AccessMode.PEEK): (0, ManagerAccess.PEEK_JOURNAL_MESSAGE),
    (ELSEWHERE, AccessMode.RECEIVE_ADMIN): (0, ManagerAccess.SET_PROPERTIES),
    (ELSEWHERE, AccessMode.PEEK_ADMIN): (0, ManagerAccess.SET_PROPERTIES),
}
"""Ways to open a queue, and what each needs on the queue and on the queue manager."""


def only(user: Sid, rights: int) -> bytes:
    """A descriptor that gives somebody these rights, and administrators all."""
    everything = AccessEntry(ADMINISTRATORS, 0xF00FF)
    entries = (everything, AccessEntry(user, rights)) if rights else (everything,)
    return encode(Descriptor(ADMINISTRATORS, b"", entries))


def _from_rules() -> Iterator[Case]:
    for kind, samples in SAMPLES.items():
        rule = RULES[kind]
        for request in samples:
            names_queue = rule.check is Check.QUEUE or (
                rule.check is Check.OBJECT and getattr(request, "name", "") != ""
            )
            if names_queue:
                yield Case(request, rule.rights, 0)
            else:
                yield Case(request, 0, rule.rights)


def _of_descriptors() -> Iterator[Case]:
    """Who sets permissions; owners have tests of their own."""
    for name in (QUEUE_NAME, ""):
        right = int(QueueAccess.CHANGE_PERMISSIONS)
        request = api.SetSecurity(name, only(ALICE, 0x60004))
        yield Case(request, right if name else 0, 0 if name else right)


CASES = [
    *_from_rules(),
    *_of_descriptors(),
    *(
        Case(api.OpenQueue(name, mode), int(on_queue), int(on_manager))
        for (name, mode), (on_queue, on_manager) in OPENINGS.items()
    ),
]


def bits(mask: int) -> list[int]:
    return [1 << number for number in range(32) if mask >> number & 1]


class Place:
    """Where cases are tried: an administrator who prepares, and Alice, who asks."""

    def __init__(
        self,
        administrator: Callable[[api.AnyRequest], api.AnyReply | None],
        alice: Callable[[api.AnyRequest], api.AnyReply | None],
    ) -> None:
        self._administrator = administrator
        self._alice = alice

    def do(self, request: api.AnyRequest) -> None:
        reply = self._administrator(request)
        assert not isinstance(reply, api.Failed), reply

    def prepare(self, on_queue: int, on_manager: int) -> None:
        """Have the queue afresh, and Alice have just these rights."""
        self._administrator(api.DeleteQueue(QUEUE_NAME))
        self._administrator(api.DeleteQueue(r"private$\another"))
        self.do(api.CreateQueue(QUEUE_NAME))
        self.do(api.OpenQueue(ELSEWHERE, AccessMode.SEND))
        self.do(api.SetSecurity(QUEUE_NAME, only(ALICE, on_queue)))
        self.do(api.SetSecurity("", only(ALICE, on_manager)))

    def is_denied(self, case: Case, on_queue: int, on_manager: int) -> bool:
        self.prepare(on_queue, on_manager)
        reply = self._alice(case.request)
        return isinstance(reply, api.Failed) and reply.code == AccessDenied.code

    def show(self, case: Case) -> None:
        """The needed rights are enough, and each of them is needed, whatever else one has."""
        assert not self.is_denied(case, case.on_queue, case.on_manager)
        assert self.is_denied(case, 0, 0)
        for missing in bits(case.on_queue):
            rights = QUEUE.everything & ~missing
            assert self.is_denied(case, rights, MANAGER.everything), hex(missing)
        for missing in bits(case.on_manager):
            rights = MANAGER.everything & ~missing
            assert self.is_denied(case, QUEUE.everything, rights), hex(missing)
