"""Envelopes of messages over HTTP, as they can be written."""

from __future__ import annotations

from hypothesis import strategies as st

from openmsmq.model.identity import MessageId
from openmsmq.model.limits import INFINITE_S
from openmsmq.wire.srmp.envelope import (
    NO_ID,
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Msmq,
    Provider,
    Services,
    Stream,
    StreamReceipt,
)
from tests.strategies.packets import guids, u16, u32

_legal = st.characters(
    exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff", max_codepoint=0x1FFFF
)
_words = st.text(_legal, min_size=1, max_size=30).filter(lambda text: text == text.strip())
urls = st.builds(
    lambda scheme, host, queue: f"{scheme}://{host}/msmq/{queue}",
    st.sampled_from(["http", "https"]),
    st.sampled_from(["a", "b.example", "10.0.0.1:8080", "[::1]"]),
    st.text(_legal, min_size=1, max_size=20).filter(lambda text: text == text.strip()),
)
_names = urls | _words.map(lambda text: f"MSMQ:DIRECT=OS:a\\{text}")
_listed = st.lists(st.sampled_from(["http://a/msmq/q", "https://b/msmq/private$/q"]), max_size=3)
moments = st.integers(0, 0x7FFFFFFE) | st.just(INFINITE_S)
message_ids = st.builds(MessageId, guids, u32)
u64 = st.integers(0, 2**64 - 1)

_services = st.builds(
    Services,
    durable=st.booleans(),
    send_to=st.just(""),
) | st.builds(
    Services,
    durable=st.booleans(),
    delivery=st.just(True),
    commitment=st.just(True),
    positive=st.booleans(),
    negative=st.booleans(),
    send_to=urls,
)
_streams = st.builds(
    Stream,
    source=guids,
    sequence=u64,
    current=st.integers(2, 0xFFFFFFFF),
    previous=u32,
    receipts_to=st.just("") | urls,
)
_providers = st.builds(Provider, u32, _words)
_msmqs = st.builds(
    Msmq,
    message_class=u16,
    priority=st.integers(0, 7),
    body_type=u32,
    source=guids,
    reach_by_s=moments,
    journal=st.booleans(),
    dead_letter=st.booleans(),
    correlation=st.binary(min_size=20, max_size=20),
    trace=st.booleans(),
    connector_type=st.none() | guids,
    application_tag=u32,
    hash_algorithm=u32,
    first=st.booleans(),
    last=st.booleans(),
    connector_manager=st.none() | guids,
    provider=st.none() | _providers,
    destinations=_listed.map(tuple),
    administration=_listed.map(tuple),
    responses=_listed.map(tuple),
)
_labels = st.text(_legal, max_size=100).map("MSMQ:".__add__)


@st.composite
def _envelopes(draw: st.DrawFn) -> Envelope:
    msmq = draw(st.none() | _msmqs)
    number = draw(st.integers(2, 0xFFFFFFFF))
    receipts = draw(st.integers(0, 7))
    return Envelope(
        to=draw(urls),
        expires_s=draw(moments),
        sent_s=draw(st.none() | moments),
        action=draw(_labels),
        id=NO_ID if msmq is None else MessageId(msmq.source, number),
        via=draw(st.just("") | _names),
        services=draw(st.none() | _services),
        stream=None if msmq is None else draw(st.none() | _streams),
        delivery_receipt=draw(st.builds(DeliveryReceipt, moments, message_ids))
        if receipts & 1
        else None,
        commitment_receipt=draw(st.builds(CommitmentReceipt, moments, st.booleans(), message_ids))
        if receipts & 2
        else None,
        stream_receipt=draw(st.builds(StreamReceipt, guids, u64, u32)) if receipts & 4 else None,
        msmq=msmq,
    )


envelopes = _envelopes()
