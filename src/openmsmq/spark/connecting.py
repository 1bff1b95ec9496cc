"""How Spark's processes reach queue managers, and what they say when one does not do its part."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import monotonic, sleep  # noqa: TID251 -- Spark's processes are no part of the core
from typing import Final

import msgspec

from openmsmq.client.blocking import QueueManager, connect
from openmsmq.client.errors import ConnectionLost, TlsMismatch
from openmsmq.model.errors import (
    AccessDenied,
    MsmqError,
    QueueDeleted,
    QueueNotFound,
    SharingViolation,
)
from openmsmq.spark.errors import BadOption, QueueGone, QueueProblem, QueueTaken
from openmsmq.spark.options import Place

_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0


@contextlib.contextmanager
def connected(
    place: Place, address: str, queue: str = "", *, first: bool = False, slates: int = 0
) -> Iterator[QueueManager]:
    """Connect for as long as a block runs; what goes wrong in it names the address and queue.

    A queue manager that does not answer is tried again for the time of the option
    `reconnectWithin`, because it may be starting; at the `first` contact of a batch it is not,
    because its address may be wrong. `slates` is for readers of very many, as in `Settings`.
    """
    with (
        explained(address, queue),
        _connection(place, address, slates, 0.0 if first else place.reconnect_within_s) as manager,
    ):
        yield manager


def _connection(place: Place, address: str, slates: int, within_s: float) -> QueueManager:
    settings = msgspec.structs.replace(place.settings(address), slates=slates)
    try:
        context = settings.tls_context()
    except OSError as error:
        raise _unusable(place, error) from None
    give_up = monotonic() + within_s
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            return connect(settings, context=context)
        except TlsMismatch:
            raise
        except ConnectionLost:
            if monotonic() + pause_s > give_up:
                raise
        sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _unusable(place: Place, error: OSError) -> BadOption:
    """Name the files that TLS was given: `ssl` does not say which of them it cannot use."""
    files = {"ca": place.ca, "certificate": place.certificate, "key": place.key}
    given = {name: file for name, file in files.items() if file}
    return BadOption(
        ", ".join(given), f"{', '.join(given.values())} cannot be used on this computer: {error}"
    )


@contextlib.contextmanager
def explained(address: str, queue: str = "") -> Iterator[None]:
    """Turn errors of the client into sentences that say what to do."""
    what = f"{queue} at {address}" if queue else address
    try:
        yield
    except (QueueNotFound, QueueDeleted) as error:
        raise QueueGone(
            f"queue {what} is not there ({error}): create it, or correct the option queue"
        ) from None
    except SharingViolation as error:
        # The general advice for this error is about programs that open queues.
        raise QueueTaken(
            f"queue {what}: {error.detail or error} ({error.name}). `openmsmq --qm {address} queue "
            f"release {queue}` gives back what a query reserved that will not come again"
        ) from None
    except AccessDenied as error:
        raise QueueProblem(
            f"{what} refuses access ({error}): check the options token, tokenFile and certificate"
        ) from None
    except MsmqError as error:
        raise QueueProblem(f"{what}: {error}") from None
    except TlsMismatch as error:
        advice = (
            "set tls to true, or ca to a file of the certificates to trust"
            if error.speaks_tls
            else "leave out tls, ca and certificate, or give the queue manager a certificate"
        )
        raise BadOption("tls", f"{error.finding}: {advice}") from None
    except ConnectionError as error:
        raise QueueProblem(f"option qm, {address}: {error}") from None
