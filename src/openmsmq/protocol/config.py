"""How a queue manager behaves towards others: every timer and limit an operator may change.

The names are those of the registry values in the product notes of [MQQB], in our spelling; the
metadata of each field gives the original, under which a configuration file may set it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from openmsmq.model import limits
from openmsmq.model.peers import PeerPolicy


def _registry(name: str, ge: int | None = None) -> msgspec.Meta:
    return msgspec.Meta(ge=ge, extra={"registry": name})


class TransferConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Timers and limits of the transfer between queue managers. [MQQB 3.1.2]"""

    window: Annotated[int, _registry("MaxUnackedPacket")] = limits.WINDOW_MAX_COUNT
    """Packets sent and not yet acknowledged, at most."""
    retry_connect_ms: Annotated[int, _registry("TryConnectInterval")] = limits.RETRY_CONNECT_MS
    round_trip_delay_ms: Annotated[int, _registry("RoundTripDelay")] = limits.ROUND_TRIP_DELAY_MS
    session_idle_ms: Annotated[int, _registry("CleanupInterval")] = limits.SESSION_IDLE_MS
    ack_wait_direct_factor: Annotated[int, _registry("QosCleanupIntervalMultiplier")] = (
        limits.ACK_WAIT_DIRECT_FACTOR
    )
    incoming_sessions_max: Annotated[int, _registry("MaxInSessions")] = (
        limits.INCOMING_SESSIONS_MAX_COUNT
    )
    resend_first_s: Annotated[int, _registry("SeqResend13Time")] = limits.RESEND_FIRST_S
    resend_second_s: Annotated[int, _registry("SeqResend46Time")] = limits.RESEND_SECOND_S
    resend_third_s: Annotated[int, _registry("SeqResend79Time")] = limits.RESEND_THIRD_S
    resend_last_s: Annotated[int, _registry("SeqResend10Time")] = limits.RESEND_LAST_S
    order_ack_max_delay_s: Annotated[int, _registry("SeqMaxAckDelay")] = (
        limits.ORDER_ACK_MAX_DELAY_S
    )
    duplicates_max: Annotated[int, _registry("RemoveDuplicateSize")] = (
        limits.DUPLICATE_FILTER_MAX_COUNT
    )
    duplicates_kept_ms: Annotated[int, _registry("RemoveDuplicateCleanup")] = (
        limits.DUPLICATE_FILTER_MS
    )
    permit_insecure_nacks: Annotated[bool, _registry("PermitInsecureNacks")] = False
    """Whether senders hear that a queue is missing or refused them (C-88)."""
    trace_reports: Annotated[bool, _registry("EnableReportMessages")] = False
    ask_ping: Annotated[bool, _registry("UsePing")] = False
    answer_ping: Annotated[bool, _registry("EnablePingService")] = True
    close_on_count_mismatch: Annotated[bool, _registry("ValidateMessageCounts")] = True
    clock_skew_max_s: Annotated[int, _registry("ClockSkewTolerance", ge=0)] = (
        limits.CLOCK_SKEW_MAX_S
    )
    final_ack_grace_s: Annotated[int, _registry("FinalAckGrace")] = limits.FINAL_ACK_GRACE_S
    hardened: Annotated[bool, _registry("Hardened_MSMQ")] = False
    """Whether nothing leaves or enters by the binary protocol."""
    route_on_direct_failure: Annotated[bool, _registry("RouteOnDirectFailure")] = True
    """Whether a routing server of the own site helps out for a neighbour in it (C-109)."""
    route_around: Annotated[bool, _registry("RouteAroundFailedLinks")] = True
    """Whether a site gate tries dearer ways when the cheapest cannot be used."""
    strict_enterprise: Annotated[bool, _registry("MqsdStrictEnterprise")] = False
    """Whether directory servers answer only those who look for their enterprise (C-116)."""
    hosts: dict[str, tuple[str, ...]] = {}
    """Addresses of host names that are known without asking anybody; names without case."""
    next_hops: dict[str, tuple[str, ...]] = {}
    """Where messages go for a queue manager, by its identifier as `str` writes it: hosts to try in
    turn."""
    connectors: dict[str, str] = {}
    """Foreign computers, and the identifier of the connector that takes their messages here."""

    peers: PeerPolicy = PeerPolicy()
    """Who is believed, and who is let in."""

    @property
    def handshake_ms(self) -> int:
        """How long a session may take to open."""
        return limits.SESSION_HANDSHAKE_MS + 2 * self.round_trip_delay_ms

    @property
    def retry_ms(self) -> int:
        """How long to wait before the next attempt to connect."""
        return self.retry_connect_ms + self.round_trip_delay_ms

    @property
    def ack_wait_ms(self) -> int:
        """How long a session waits for an acknowledgment, unless its peer says otherwise."""
        return limits.ACK_WAIT_MS + self.round_trip_delay_ms

    @property
    def resend_s(self) -> tuple[int, ...]:
        """The pauses before each resend; the last one is used for all that follow."""
        steps = (self.resend_first_s, self.resend_second_s, self.resend_third_s)
        repeated = (s for s in steps for _ in range(limits.RESEND_STEP_COUNT))
        return (*repeated, self.resend_last_s)

    @property
    def resends_ms(self) -> int:
        """How long it is from a message to the copy that follows the longest pause."""
        return 1_000 * sum(self.resend_s)
