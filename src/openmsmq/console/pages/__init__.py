"""The pages, one module for each idea: what each shows, and what its form does."""

from __future__ import annotations

from typing import Final

from openmsmq.console.pages import (
    connections,
    letters,
    map,
    message,
    outgoing,
    overview,
    path,
    queue,
    queues,
    removing,
    sending,
    transactions,
)
from openmsmq.console.pages.program import audit, configuration
from openmsmq.console.visit import Page

PAGES: Final[tuple[Page, ...]] = (
    *overview.PAGES,
    *queues.PAGES,
    *queue.PAGES,
    *message.PAGES,
    *sending.PAGES,
    *removing.PAGES,
    *letters.PAGES,
    *outgoing.PAGES,
    *transactions.PAGES,
    *path.PAGES,
    *map.PAGES,
    *audit.PAGES,
    *configuration.PAGES,
    *connections.PAGES,
)
"""All pages that somebody has to be signed in for."""
