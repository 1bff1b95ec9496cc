"""Claims: a name is somebody's as long as he has flows under it."""

from __future__ import annotations

from openmsmq.manager.peers.claims import Claims
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid

WHO = Guid(b"0123456789abcdef")
SILENCE_S = 100


def at(seconds: int) -> Instant:
    return Instant(seconds * 1000, 1_700_000_000 + seconds)


class Sessions:
    """Who has a session open, and where."""

    def __init__(self) -> None:
        self.open: set[tuple[bytes, str]] = set()

    def has_session(self, manager: bytes, place: str) -> bool:
        return (manager, place) in self.open


def test_a_name_is_nobodys_before_the_first_flow_and_after_the_last() -> None:
    claims = Claims(SILENCE_S, Sessions(), at(0))
    assert claims.place_of(WHO) is None
    assert claims.is_free(WHO, at(0))
    claims.begin(WHO, "here", at(0))
    claims.begin(WHO, "here", at(0))
    claims.end(WHO)
    assert claims.place_of(WHO) == "here"
    assert not claims.is_free(WHO, at(0))
    claims.end(WHO)
    assert claims.place_of(WHO) is None


def test_a_name_is_free_after_a_silence_without_a_session() -> None:
    sessions = Sessions()
    claims = Claims(SILENCE_S, sessions, at(0))
    claims.begin(WHO, "here", at(0))
    claims.heard(WHO, "here", at(50))
    assert not claims.is_free(WHO, at(149))
    assert claims.is_free(WHO, at(150))
    sessions.open.add((WHO, "here"))
    assert not claims.is_free(WHO, at(1_000))


def test_after_a_start_silence_begins_anew() -> None:
    claims = Claims(SILENCE_S, Sessions(), at(500))
    claims.restore(WHO, "before")
    claims.restore(WHO, "later")
    assert claims.place_of(WHO) == "later"
    assert not claims.is_free(WHO, at(599))
    assert claims.is_free(WHO, at(600))


def test_every_change_of_place_can_be_noticed() -> None:
    claims = Claims(SILENCE_S, Sessions(), at(0))
    versions = [claims.version]
    claims.begin(WHO, "here", at(0))
    versions.append(claims.version)
    claims.heard(WHO, "there", at(1))
    versions.append(claims.version)
    claims.end(WHO)
    versions.append(claims.version)
    assert versions == sorted(set(versions))
    claims.heard(WHO, "there", at(2))
    assert claims.version == versions[-1]
