"""Security descriptors, and the people in them."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from openmsmq.security.access.descriptors import AccessEntry, Descriptor
from openmsmq.security.access.sids import (
    ADMINISTRATORS,
    ANONYMOUS,
    AUTHENTICATED,
    EVERYONE,
    OWNER_RIGHTS,
    Sid,
    unix_group,
    unix_user,
)

PEOPLE = (
    EVERYONE,
    ANONYMOUS,
    AUTHENTICATED,
    ADMINISTRATORS,
    OWNER_RIGHTS,
    unix_user(1),
    unix_user(2),
    unix_group(3),
)
RIGHTS = (1, 2, 4, 8, 0x10, 0x20, 0x10000, 0x20000, 0x40000, 0x80000, 1 << 28, 1 << 30, 1 << 31)

people: st.SearchStrategy[Sid] = st.sampled_from(PEOPLE)
masks = st.sets(st.sampled_from(RIGHTS), min_size=1).map(sum)
entries = st.builds(AccessEntry, people, masks, st.booleans(), st.booleans())
descriptors = st.builds(
    Descriptor,
    st.one_of(st.just(b""), people),
    st.one_of(st.just(b""), people),
    st.one_of(st.none(), st.lists(entries, max_size=8).map(tuple)),
    st.binary(max_size=30).map(
        lambda body: body and struct.pack("<BBHHH", 2, 0, 8 + len(body), 1, 0) + body
    ),
)
