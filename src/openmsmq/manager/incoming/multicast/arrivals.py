"""Messages that came to a multicast address: a copy goes into each queue that has it.

Whoever can send to the address can say anything, so it is taken as from a stranger: everybody must
be allowed to write into the queue. No receipts are sent, nothing is in a sequence, nothing comes to
a queue that the envelope does not name. [MQSRM 3.1.5.1]
"""

from __future__ import annotations

import hashlib

import msgspec

from openmsmq.manager.askers import OURSELVES, Acting, Asker
from openmsmq.manager.incoming.destinations import Destination
from openmsmq.manager.incoming.local_arrivals import LocalArrivals
from openmsmq.manager.incoming.runs import Runs
from openmsmq.manager.peers.peering import Word
from openmsmq.manager.queues.table import QueueTable
from openmsmq.model.clock import Instant
from openmsmq.model.identity import GUID_BYTES, NIL_GUID
from openmsmq.model.names import DirectFormatName, parse_format_name
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import encode
from openmsmq.wire.srmp.arriving import arrived_message
from openmsmq.wire.srmp.kinds import Kind, kind_of
from openmsmq.wire.srmp.multicast import TO, read_multicast


class MulticastArrivals:
    """Takes what the driver has heard."""

    def __init__(
        self, acting: Acting, table: QueueTable, name: str, local: LocalArrivals, runs: Runs
    ) -> None:
        self._acting = acting
        self._table = table
        self._name = name
        self._local = local
        self._runs = runs

    def take(self, address: str, group: str, payload: bytes, now: Instant) -> None:
        """Put a message into all queues with this address."""
        queues = self._table.with_address(group)
        if not queues:
            return
        try:
            envelope, parts = read_multicast(payload)
            if envelope.to.upper() != f"{TO}{group}":
                raise DecodeError(TO, 0, f"an envelope to {envelope.to[:80]}")
            if kind_of(envelope) is not Kind.MESSAGE or envelope.stream is not None:
                raise DecodeError(TO, 0, "receipts and streams do not travel by multicast")
            # Nobody may be asked for receipts by everybody, and nothing is durable.
            envelope = msgspec.structs.replace(envelope, services=None)
            message = arrived_message(envelope, parts, now.unix_s)
            self._acting.on_word_of(Asker(address, NIL_GUID, known=False))
            for queue in queues:
                name = parse_format_name(f"DIRECT=OS:{self._name}\\{queue.name}")
                assert isinstance(name, DirectFormatName)
                header = msgspec.structs.replace(
                    message.user, destination=DirectName(name.wire_text)
                )
                packet = encode(msgspec.structs.replace(message, user=header))
                told = message.user.source + f"{address} {group} {queue.id}".encode()
                remembered = hashlib.sha256(told).digest()[:GUID_BYTES]
                to = Destination(NIL_GUID, Word.FOREIGN, remembered)
                to.lead_to(queue)
                self._local.take(packet, outline(packet), to, [packet], 1, now)
        except (DecodeError, EncodeError):
            # It is no message, or one for somebody else.
            pass
        finally:
            self._runs.flush(now)
            self._acting.on_word_of(OURSELVES)
