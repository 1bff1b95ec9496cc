"""Where the fuzzer starts: the golden packets, and one valid input for each form there is."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import chain, product
from pathlib import Path
from typing import Final

from openmsmq.capture import pcapng
from openmsmq.capture.link_layers import Endpoint, LinkType, Protocol
from openmsmq.capture.recorder import Recorder, ip_packet, udp_packet
from openmsmq.model.identity import Guid, MessageId, SequenceId
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.notifications import (
    Command,
    DirectoryNotification,
    Event,
    ManagerNotification,
    Property,
    Update,
)
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery, PingPacket, ServerEntry
from openmsmq.wire.fields.variants import PROPERTIES, PropertyValue, VariantType
from openmsmq.wire.headers import security, user
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.multi_queue import (
    AddressList,
    DistributionListName,
    MultiQueueFormatHeader,
)
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnAdminHost,
    PrivateOnDestination,
    PrivateOnSource,
    PublicName,
    QueueName,
    SameAsAdmin,
)
from openmsmq.wire.headers.security import ProviderInfo, SecurityHeader
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.soap import SoapHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.keys import (
    ProviderType,
    PublishedKey,
    PublishedKeys,
    RsaPublicKey,
    SessionAlgorithm,
    SessionKeyBlob,
    UserCertificate,
    UserCertificates,
)
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
    encode,
)
from openmsmq.wire.pgm import packets as pgm
from tests.golden import golden_request

GOLDEN: Final = Path(__file__).parents[1] / "golden"
ID: Final = Guid(range(16))
OTHER_ID: Final = Guid(range(16, 32))
SEQUENCE: Final = SequenceId(1, 0x5F000000)
DIRECT: Final = DirectName(r"OS:host\private$\orders")
PROPERTIES_ONLY: Final = MessageProperties.of(b"body", "label", extension=b"extra")

NAMES: Final[tuple[QueueName, ...]] = (
    None,
    SameAsAdmin(),
    PrivateOnSource(16),
    PrivateOnDestination(17),
    PrivateOnAdminHost(18),
    PublicName(OTHER_ID),
    PrivateName(ID, 19),
    DirectName("TCP:10.0.0.1\\q"),
)
LISTS: Final = MultiQueueFormatHeader(
    AddressList((DirectName(r"OS:a\q"), PublicName(ID), PrivateName(ID, 20))),
    AddressList((DistributionListName(OTHER_ID),)),
    AddressList(),
    b"signature",
)
SECURITY: Final = SecurityHeader(
    bytes.fromhex("010500000000000515000000010000000200000003000000f4010000"),
    b"key",
    b"signature",
    b"certificate",
    ProviderInfo(1, "Provider").encode(),
    security.SenderKind.SID | security.ITEMS_ANNOUNCED | security.BODY_ENCRYPTED,
)


def golden_packets() -> list[bytes]:
    return [bytes.fromhex(path.read_text()) for path in sorted(GOLDEN.glob("*.hex"))]


def messages() -> list[UserMessage]:
    """Every form of name in every place, every optional header alone, and all together."""
    header = UserHeader(ID, OTHER_ID, sent_time_s=1, message_number=2, destination=DIRECT)
    recoverable = UserHeader(ID, flags=user.RECOVERABLE | user.JOURNAL_ON_FAILURE)
    transaction = TransactionHeader(SEQUENCE, 2, 1, 0x12)
    destinations = (None, DIRECT, PublicName(ID), PrivateOnDestination(4))
    admins = [name for name in NAMES if not isinstance(name, SameAsAdmin | PrivateOnAdminHost)]
    found = [
        UserMessage(
            UserHeader(ID, destination=destination, admin_queue=admin, response_queue=response),
            PROPERTIES_ONLY,
        )
        for destination, admin, response in chain(
            product(destinations, (None,), NAMES), product((DIRECT,), admins, (SameAsAdmin(),))
        )
    ]
    plain = PROPERTIES_ONLY
    found += [
        UserMessage(header, MessageProperties.of()),
        UserMessage(UserHeader(ID, connector_type=OTHER_ID), plain),
        UserMessage(recoverable, plain, transaction=transaction),
        UserMessage(
            recoverable, plain, transaction=TransactionHeader(SEQUENCE, 1, connector_manager=ID)
        ),
        UserMessage(header, plain, security=SECURITY),
        UserMessage(header, plain, debug=DebugHeader()),
        UserMessage(header, plain, debug=DebugHeader(ID)),
        UserMessage(header, plain, soap=SoapHeader(b"a\0\0\0", b"b\0c\0\0\0")),
        UserMessage(header, plain, soap=SoapHeader(b"a\0b\0\0\0", b"c\0", padded=False)),
        UserMessage(header, plain, multi_queue=LISTS),
        UserMessage(header, plain, session=SessionHeader(sent_count=1)),
        UserMessage(header, plain, session=SessionHeader(sent_count=1), session_counted=True),
        UserMessage(header, plain, tail=b"tail"),
        UserMessage(
            recoverable,
            MessageProperties(b"ciphertext", b"l\0\0\0", 1, body_size=4, allocated_size=10),
            transaction=transaction,
            security=SECURITY,
            debug=DebugHeader(ID),
            soap=SoapHeader(b"a\0\0\0", b"b\0\0\0"),
            multi_queue=LISTS,
            session=SessionHeader(window=32),
            tail=b"tail",
        ),
    ]
    return found


def system_messages() -> list[UserMessage]:
    """What queue managers send each other, and bodies of each type that can be shown."""
    order_ack, _, final_ack = acknowledgments()
    header = UserHeader(ID, OTHER_ID, destination=PrivateOnDestination(4))
    direct = UserHeader(ID, destination=DirectName(r"TCP:10.0.0.1\PRIVATE$\order_queue$"))
    notified = UserHeader(ID, OTHER_ID, destination=PrivateOnDestination(3))
    label = "QM Ordering Ack"
    found = [
        UserMessage(header, MessageProperties.of(order_ack, label, message_class=0xFF)),
        UserMessage(direct, MessageProperties.of(final_ack, label, message_class=0x4000)),
    ]
    found += [UserMessage(notified, MessageProperties.of(body)) for body in notifications()[:3]]
    found += [
        UserMessage(notified, MessageProperties.of(b"t\0e\0x\0t\0", body_type=body_type))
        for body_type in (0, 8, 30, 31, 8209, 99)
    ]
    found.append(
        UserMessage(direct, MessageProperties.of(b"text", correlation_id=bytes(range(20))))
    )
    return found


def packets() -> list[bytes]:
    internal: list[Packet] = [
        EstablishConnection(EstablishHeader(ID, OTHER_ID, 5)),
        ConnectionParameters(ParametersHeader(500, 500, 64)),
        SessionAck(SessionHeader(1, 1, 1, 1, 1)),
        SessionAck(SessionHeader(), tail=b"tail"),
    ]
    return golden_packets() + [
        encode(packet) for packet in internal + messages() + system_messages()
    ]


def streams() -> list[bytes]:
    """Two bytes that say how to cut, then packets back to back."""
    whole = [packet for packet in packets() if len(packet) < 600]
    runs = [b"".join(whole[at : at + 3]) for at in range(0, len(whole), 3)]
    return [struct.pack("<H", 7 * index) + run for index, run in enumerate(runs)]


def datagrams() -> list[bytes]:
    entries = (ServerEntry("alpha"), ServerEntry("beta", ipx=True))
    return [
        *golden_packets(),
        PingPacket(ID, 7).encode(),
        DirectoryQuery(ID, OTHER_ID, ID).encode(),
        DirectoryQuery(ID, OTHER_ID, ID, tail=struct.pack("<III", 2, 1, 2)).encode(),
        DirectoryAnswer(ID, (OTHER_ID,)).encode(),
        DirectoryAnswer(ID, (OTHER_ID, ID), OTHER_ID, entries).encode(),
    ]


def keys() -> list[bytes]:
    key = RsaPublicKey(512, 65537, (1 << 511) + 1)
    published = PublishedKey(ProviderType.RSA_FULL, "Base Provider", key.encode())
    broken = PublishedKey(ProviderType.RSA_AES, "Other", b"no key")
    certificate = UserCertificate(bytes(16), ID, b"certificate")
    return [
        key.encode(),
        SessionKeyBlob(SessionAlgorithm.RC4, b"encrypted").encode(),
        SessionKeyBlob(SessionAlgorithm.AES_256, b"encrypted").encode(),
        PublishedKeys().encode(),
        PublishedKeys((published, broken)).encode(),
        UserCertificates().encode(),
        UserCertificates((certificate, certificate)).encode(),
    ]


_SAMPLES: Final[dict[VariantType, PropertyValue]] = {
    VariantType.BOOL: True,
    VariantType.LPWSTR: "text",
    VariantType.BLOB: b"blob",
    VariantType.CLSID: OTHER_ID,
    VariantType.UI1_VECTOR: b"bytes",
    VariantType.UI4_VECTOR: (1, 2),
    VariantType.LPWSTR_VECTOR: ("a", "b"),
    VariantType.CLSID_VECTOR: (ID, OTHER_ID),
}


def notifications() -> list[bytes]:
    one_of_each = {kind: number for number, (_, kind) in PROPERTIES.items()}
    values = tuple(Property(number, _SAMPLES.get(kind, 1)) for kind, number in one_of_each.items())
    updates = (
        Update(Command.CREATE, r"host\queue", ID, values),
        Update(Command.DELETE, OTHER_ID),
    )
    found = [DirectoryNotification((update,)).encode() for update in updates]
    found += [
        DirectoryNotification((Update(Command.CHANGE, ID, ID, (value,)),)).encode()
        for value in values
    ]
    found.append(DirectoryNotification(updates).encode())
    found += [ManagerNotification(event, ID, "server.example").encode() for event in Event]
    return found


def acknowledgments() -> list[bytes]:
    return [
        OrderAck.up_to(SEQUENCE, 8).encode(),
        OrderAck(SEQUENCE, 8, 7, bytes(range(20))).encode(),
        FinalAck(SEQUENCE, 8, 7, MessageId(ID, 3)).encode(),
    ]


def names() -> list[bytes]:
    direct = [
        f"DIRECT={protocol}{host}\\{queue}"
        for protocol, host, queue in product(
            ("OS:", "TCP:"),
            ("host", "10.0.0.1", "fe80::1"),
            (
                "q",
                r"PRIVATE$\q",
                r"q;sub",
                r"q;JOURNAL",
                r"PRIVATE$\q;s;JOURNAL",
                "SYSTEM$;DEADXACT",
            ),
        )
    ]
    others = [
        r"DIRECT=HTTP://host:8080/MSMQ/q",
        r"DIRECT=HTTPS://[::1]/msmq/PRIVATE$/q;sub",
        "DIRECT=SPX:00000001.0123456789ab\\q",
        f"PUBLIC={ID}",
        f"PUBLIC={ID};JOURNAL",
        f"PRIVATE={ID}\\1f",
        f"MACHINE={ID};DEADLETTER",
        f"CONNECTOR={ID};XACTONLY",
        "MULTICAST=234.1.1.1:8001",
        f"DL={ID}@example.org",
        f"DL={ID},PUBLIC={ID},DIRECT=OS:a\\b",
        r".\private$\orders",
        r"host\orders;journal",
        r"host\system$;deadletter",
        "orders",
    ]
    return [text.encode() for text in direct + others]


def captures() -> list[bytes]:
    """Recorded conversations, and frames behind every link layer and in fragments."""
    client, server = (Endpoint(bytes((10, 0, 0, host)), port) for host, port in ((1, 9), (2, 1801)))
    establish = encode(EstablishConnection(EstablishHeader(ID, OTHER_ID, 5)))
    first, *_, last = map(encode, messages())
    recorder = Recorder()
    conversation = b"".join(
        (
            recorder.start(),
            recorder.opened(client, server, 1),
            recorder.sent(client, server, establish + first, 2),
            recorder.sent(server, client, last, 3),
            recorder.datagram(client, server, PingPacket(ID, 7).encode(), 4),
            recorder.closed(client, server, 5),
        )
    )
    six, other = (Endpoint(bytes(15) + bytes((host,)), 3527) for host in (1, 2))
    datagram = udp_packet(client, server, b"ping")
    ethernet = bytes(12)
    frames = [
        (LinkType.ETHERNET, ethernet + b"\x08\x00" + datagram),
        (LinkType.ETHERNET, ethernet + b"\x81\x00\x00\x01\x08\x00" + datagram),
        (LinkType.NULL, b"\x02\0\0\0" + datagram),
        (LinkType.LINUX_SLL, bytes(14) + b"\x08\x00" + datagram),
        (LinkType.LINUX_SLL2, b"\x08\x00" + bytes(18) + datagram),
        (LinkType.RAW, udp_packet(six, other, b"ping")),
        (LinkType.RAW, _extended(six, other)),
    ]
    found = [conversation, *[_capture(link_type, frame) for link_type, frame in frames]]
    found.append(_capture(LinkType.RAW, *_fragments(client, server)))
    found.append(_classic_capture(datagram))
    found.append(_over_http(client, Endpoint(server.address, 80)))
    return found


def _over_http(client: Endpoint, server: Endpoint) -> bytes:
    """A message over HTTP with its answer, and one of multicast."""
    recorder = Recorder()
    group = Endpoint(bytes((234, 1, 1, 1)), 8001)
    body = pgm.Data(1, 1, golden_request("mqsrm-4.5-multicast"))
    packet = pgm.Packet(pgm.SourceId(bytes(6), 1), group.port, body)
    return b"".join(
        (
            recorder.start(),
            recorder.opened(client, server, 1),
            recorder.sent(client, server, golden_request("mqsrm-4.1-simple"), 2),
            recorder.sent(server, client, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 3),
            recorder.closed(client, server, 4),
            pcapng.frame_block(ip_packet(client, group, Protocol.PGM, packet.encode()), 5),
        )
    )


def views() -> list[bytes]:
    return packets() + datagrams() + keys() + notifications() + acknowledgments()


def _capture(link_type: LinkType, *frames: bytes) -> bytes:
    blocks = [pcapng.frame_block(frame, 10 + time) for time, frame in enumerate(frames)]
    return b"".join((pcapng.file_start(link_type), *blocks))


def _classic_capture(frame: bytes) -> bytes:
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, LinkType.RAW)
    return header + struct.pack("<IIII", 1, 2, len(frame), len(frame)) + frame


def _extended(source: Endpoint, destination: Endpoint) -> bytes:
    """An IPv6 packet with hop-by-hop options and a fragment header that says "all of it"."""
    plain = udp_packet(source, destination, b"ping")
    payload = bytes((44, 0)) + bytes(6) + bytes((Protocol.UDP, 0)) + bytes(6) + plain[40:]
    return plain[:4] + struct.pack(">HB", len(payload), 0) + plain[7:40] + payload


def _fragments(source: Endpoint, destination: Endpoint) -> tuple[bytes, bytes]:
    """An IPv4 datagram in two parts, the second one first."""
    payload = udp_packet(source, destination, b"a ping in two parts")[20:]
    first, second = (
        ip_packet(source, destination, Protocol.UDP, part) for part in (payload[:16], payload[16:])
    )
    return second[:6] + b"\x00\x02" + second[8:], first[:6] + b"\x20\x00" + first[8:]


SEEDS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "packets": packets,
    "frames": streams,
    "datagrams": datagrams,
    "keys": keys,
    "notifications": notifications,
    "acknowledgments": acknowledgments,
    "names": names,
    "captures": captures,
    "views": views,
}
