from __future__ import annotations

from functools import reduce
from operator import or_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.access import ManagerAccess, QueueAccess
from openmsmq.security.access.access import MANAGER, QUEUE, queue_descriptor
from openmsmq.security.access.descriptors import Descriptor
from openmsmq.security.access.rights import MANAGER_WORDS, QUEUE_WORDS, describe, mask_of, words_of
from openmsmq.security.access.sids import unix_user

known = st.sampled_from([QUEUE_WORDS, MANAGER_WORDS])


@given(known, st.data())
def test_rights_survive_their_words(words: dict[str, int], data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.sampled_from(sorted(words))))
    mask = reduce(or_, (int(words[word]) for word in chosen), 0)
    assert mask_of(words_of(mask, words), words) == mask


@given(known, st.integers(0, 0xFFFFFFFF))
def test_no_right_is_left_unsaid(words: dict[str, int], mask: int) -> None:
    said = words_of(mask, words)
    numbers = sum(int(word, 16) for word in said if word.startswith("0x"))
    assert mask_of([word for word in said if not word.startswith("0x")], words) | numbers == mask


def test_every_right_has_a_word() -> None:
    assert reduce(or_, QUEUE_WORDS.values()) == QUEUE.everything == QueueAccess.GENERIC_ALL
    assert reduce(or_, MANAGER_WORDS.values()) == MANAGER.everything == ManagerAccess.GENERIC_ALL
    assert words_of(QUEUE.everything, QUEUE_WORDS) == ["full"]
    assert words_of(3, QUEUE_WORDS) == ["receive"]


def test_an_unknown_word_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'write' is no right: use full, receive"):
        mask_of(["write"], QUEUE_WORDS)


def test_a_descriptor_is_said_in_one_line() -> None:
    assert describe(queue_descriptor(unix_user(7)), QUEUE_WORDS) == (
        "owner user:7; user:7 allowed full; administrators allowed full; everyone allowed send, "
        "get-properties, get-permissions; anonymous allowed send"
    )
    assert describe(Descriptor(), QUEUE_WORDS) == "owner nobody; everybody may do everything"
