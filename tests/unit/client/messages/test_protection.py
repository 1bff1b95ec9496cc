"""Session keys of applications that encrypt: how long they are in memory. [MQQB 3.1.6.11]"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openmsmq.api import messages as api
from openmsmq.client.messages import protection
from openmsmq.client.messages.certificates import Certificate
from openmsmq.client.messages.protection import Destination, Protection
from openmsmq.model.identity import Guid
from openmsmq.model.message import AuthenticationRequest
from openmsmq.wire import packets
from openmsmq.wire.packets import UserMessage
from tests.strategies.keys import (
    DESTINATION,
    SID,
    SOURCE,
    certificate,
    encryption_key,
    letter,
    private_key,
)

OTHER = Guid(bytes([0xCD]) * 16)
LIFE_S, MARGIN_S = 600, 60


class Application:
    """Encrypts for queue managers whose keys it is told, at times that a test decides."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.planned: list[tuple[float, Callable[[], None]]] = []
        self.protection = Protection(
            ("aes256",), lambda: self.now_s, lambda pause_s, call: self._later(pause_s, call)
        )

    def _later(self, pause_s: float, call: Callable[[], None]) -> None:
        self.planned.append((self.now_s + pause_s, call))

    def encrypt(self, manager: Guid) -> None:
        steps = self.protection.protecting(
            Destination("", manager, is_local=False),
            SOURCE,
            1,
            None,
            AuthenticationRequest.NONE,
            encrypt=True,
        )
        next(steps)
        key = encryption_key().published()
        told = api.EncryptionKey(key.provider_name, key.provider_type, key.blob)
        with pytest.raises(StopIteration) as done:
            steps.send(api.EncryptionKeys([told]))
        done.value.value(packets.encode(letter()))

    def pass_to(self, now_s: float) -> None:
        self.now_s = now_s
        due = [each for each in self.planned if each[0] <= now_s]
        self.planned = [each for each in self.planned if each[0] > now_s]
        for _, call in due:
            call()

    @property
    def kept(self) -> int:
        return len(self.protection._keys.cache)  # noqa: SLF001 -- what is asked is inside


@pytest.mark.spec("MQQB-3.1.6.11-01", "MQQB-3.1.6.11-02", "MQQB-3.1.6.11-03", "MQQB-3.1.6.11-04")
def test_old_keys_leave_memory_though_nobody_encrypts_any_more() -> None:
    application = Application()
    assert application.planned == []
    application.encrypt(DESTINATION)
    application.now_s += 100
    application.encrypt(OTHER)
    assert application.kept == 2
    # Planned once, for the oldest key and a minute more.
    assert [due for due, _ in application.planned] == [1_000 + LIFE_S + MARGIN_S]
    application.pass_to(1_000 + LIFE_S + MARGIN_S)
    assert application.kept == 1
    assert [due for due, _ in application.planned] == [1_100 + LIFE_S + MARGIN_S]
    application.pass_to(1_100 + LIFE_S + MARGIN_S)
    assert application.kept == 0
    assert application.protection._keys._last is None, "nor is it kept anywhere else"  # noqa: SLF001
    assert application.planned == [], "nothing is planned for an empty cache"


def test_the_wait_keeps_no_program_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[bool] = []
    begun: list[bool] = []
    start = protection.threading.Timer.start

    def note(timer: protection.threading.Timer) -> None:
        begun.append(timer.daemon)
        start(timer)
        timer.join()

    monkeypatch.setattr(protection.threading.Timer, "start", note)
    protection.in_a_thread(0.0, lambda: called.append(True))
    assert (begun, called) == ([True], [True])


@pytest.mark.spec("MQMQ-2.2.19.3-23")
def test_messages_are_signed_with_sha_512_if_nobody_asks_for_something_else() -> None:
    application = Application()
    steps = application.protection.protecting(
        Destination("", DESTINATION, is_local=False),
        SOURCE,
        1,
        Certificate(private_key(), certificate()),
        AuthenticationRequest.SIGNATURE_20,
        encrypt=False,
    )
    next(steps)
    with pytest.raises(StopIteration) as done:
        steps.send(api.CallerStatus("clerk", SID, [SID], None, []))
    signed = packets.decode(done.value.value(packets.encode(letter())))
    assert isinstance(signed, UserMessage)
    assert signed.properties.hash_algorithm == 0x800E
    assert signed.security is not None
    assert signed.security.signature
