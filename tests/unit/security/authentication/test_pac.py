from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.access.sids import ADMINISTRATORS, Sid
from openmsmq.security.authentication.pac import (
    DOMAIN_GROUPS_MAX_COUNT,
    LOGON_INFO_MAX_BYTES,
    decode_logon_info,
)
from openmsmq.wire.errors import DecodeError
from tests.unit.security.authentication.sides import LOGON_INFO

DOMAIN = "S-1-5-21-1766614589-2373011536-4029595781"


def sid(number: int, domain: str = DOMAIN) -> Sid:
    return Sid.parse(f"{domain}-{number}")


def nested(found: Sid) -> bytes:
    return struct.pack("<I", found[1]) + found


def logon_info(
    *,
    user: int = 1000,
    domain: Sid | None = None,
    groups: tuple[tuple[int, int], ...] = (),
    extra: tuple[tuple[Sid, int], ...] = (),
    resources: tuple[tuple[int, int], ...] = (),
    resource_domain: Sid | None = None,
) -> bytes:
    """Write what a ticket says, after the public description. [MS-PAC 2.5]"""
    domain = Sid.parse(DOMAIN) if domain is None else domain
    fixed = struct.pack("<I48x", 1) + bytes(48)
    fixed += struct.pack("<HHIIIII", 0, 0, user, 513, len(groups), bool(groups), 0)
    fixed += bytes(16) + bytes(16)
    fixed += struct.pack("<I40xIII", 2, len(extra), bool(extra), resource_domain is not None)
    fixed += struct.pack("<II", len(resources), bool(resources))
    behind = b""
    if groups:
        behind += struct.pack("<I", len(groups)) + b"".join(struct.pack("<II", *g) for g in groups)
    behind += nested(domain)
    if extra:
        behind += struct.pack("<I", len(extra))
        behind += b"".join(struct.pack("<II", 3, attributes) for _, attributes in extra)
        behind += b"".join(nested(each) for each, _ in extra)
    if resource_domain is not None:
        behind += nested(resource_domain)
        if resources:
            behind += struct.pack("<I", len(resources))
            behind += b"".join(struct.pack("<II", *each) for each in resources)
    return bytes.fromhex("01100800cccccccc0000000000000000") + fixed + behind


def test_what_a_domain_controller_says_is_understood() -> None:
    found = decode_logon_info(LOGON_INFO)
    assert found.user == sid(1102)
    # Domain Users, Domain Admins, and a group that only the domain's own computers know.
    assert found.groups == {sid(513), sid(512), sid(572)}


def test_groups_of_other_domains_count_too() -> None:
    other = Sid.parse("S-1-5-21-7-8-9")
    found = decode_logon_info(
        logon_info(
            groups=((1200, 7),),
            extra=((sid(1300, "S-1-5-21-4-5-6"), 7),),
            resources=((1400, 7),),
            resource_domain=other,
        )
    )
    assert found.groups == {
        *(sid(513), sid(1200)),
        *(sid(1300, "S-1-5-21-4-5-6"), sid(1400, "S-1-5-21-7-8-9")),
    }


def test_groups_that_only_take_rights_away_or_are_switched_off_do_not_count() -> None:
    info = logon_info(groups=((1200, 0x17), (1201, 0x3)), extra=((sid(1202), 0x10),))
    assert decode_logon_info(info).groups == {sid(513)}


@pytest.mark.parametrize("foreign", [str(ADMINISTRATORS), "S-1-22-1-0", "S-1-5-18", "S-1-9-1-2"])
def test_a_domain_does_not_decide_who_is_who_on_this_computer(foreign: str) -> None:
    stranger = Sid.parse(foreign)
    assert decode_logon_info(logon_info(extra=((stranger, 7),))).groups == {sid(513)}
    builtin = Sid.parse("S-1-5-32")
    info = logon_info(resources=((544, 7),), resource_domain=builtin)
    assert decode_logon_info(info).groups == {sid(513)}
    with pytest.raises(DecodeError, match="no user of a domain"):
        decode_logon_info(logon_info(user=544, domain=builtin))


def test_somebody_without_a_number_is_nobody() -> None:
    with pytest.raises(DecodeError, match="names no user"):
        decode_logon_info(logon_info(user=0))


def test_a_list_that_is_too_long_is_refused() -> None:
    most = tuple((number, 7) for number in range(DOMAIN_GROUPS_MAX_COUNT))
    assert len(decode_logon_info(logon_info(groups=most)).groups) == DOMAIN_GROUPS_MAX_COUNT
    with pytest.raises(DecodeError, match="more than"):
        decode_logon_info(logon_info(groups=(*most, (9999, 7))))


def test_what_is_too_long_is_not_read() -> None:
    with pytest.raises(DecodeError, match="longer"):
        decode_logon_info(LOGON_INFO.ljust(LOGON_INFO_MAX_BYTES + 1, b"\0"))


@given(st.integers(0, len(LOGON_INFO) - 1), st.integers(0, 255), st.integers(0, 40))
def test_any_bytes_give_a_user_of_a_domain_or_the_one_error(
    place: int, value: int, cut: int
) -> None:
    raw = bytearray(LOGON_INFO)
    raw[place] = value
    with suppress(DecodeError):
        found = decode_logon_info(bytes(raw[: len(raw) - cut]))
        assert all(str(each).startswith("S-1-5-21-") for each in (found.user, *found.groups))
