"""How Spark's processes reach queue managers, and what they say when one does not do its part."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from openmsmq.api.messages import QueueStatus
from openmsmq.client.blocking import QueueManager, connect
from openmsmq.model.errors import (
    AccessDenied,
    MsmqError,
    QueueDeleted,
    QueueNotFound,
    SharingViolation,
)
from openmsmq.spark.errors import QueueGone, QueueProblem
from openmsmq.spark.options import EVERY_QUEUE, Place


@contextlib.contextmanager
def connected(place: Place, address: str, queue: str = "") -> Iterator[QueueManager]:
    """Connect for as long as a block runs; what goes wrong in it names the address and queue."""
    with explained(address, queue), connect(place.settings(address)) as manager:
        yield manager


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
        raise QueueProblem(
            f"queue {what}: {error}. `openmsmq --qm {address} queue release {queue}` gives back "
            "what a query reserved that will not come again"
        ) from None
    except AccessDenied as error:
        raise QueueProblem(
            f"{what} refuses access ({error}): check the options token and tokenFile"
        ) from None
    except MsmqError as error:
        raise QueueProblem(f"{what}: {error}") from None
    except ConnectionError as error:
        raise QueueProblem(f"option qm, {address}: {error}") from None


def find_queues(manager: QueueManager, name: str) -> list[QueueStatus]:
    """Give the queues that a name in the option means, as they are now."""
    return manager.queues() if name == EVERY_QUEUE else [manager.queue(name).properties()]
