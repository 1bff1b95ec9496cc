"""The map of the enterprise: sites, links and costs, and how each queue manager is now."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.responses import Response

from openmsmq.console import limits
from openmsmq.console.asking.enterprise import Enterprise, enterprise
from openmsmq.console.rendering import drawing
from openmsmq.console.visit import Page, Visit

_ONE_AT_A_TIME: Final = asyncio.Semaphore(1)
"""Graphviz is not made for several threads."""


async def show_map(visit: Visit) -> Response:
    """Show the enterprise: a picture, and tables that say the same."""
    found = await enterprise(visit.manager, visit.session.others)
    picture, problem = "", ""
    if len(found.image.sites) > limits.MAP_SITES_MAX_COUNT:
        problem = "There are too many sites for a picture; openmsmq directory draw makes one."
    elif found.members:
        picture, problem = await _picture(found)
    return visit.page(
        "map.html",
        found=found,
        name=found.image.enterprise.name if found.image.enterprise else "",
        picture=drawing(picture),
        problem=problem,
        shown=found.members[: limits.MAP_MEMBERS_SHOWN_COUNT],
        asks_others=visit.session.others is not None,
    )


async def _picture(found: Enterprise) -> tuple[str, str]:
    try:
        # Who does not draw need not have what draws.
        from openmsmq.directory.drawing.draw import State, draw_inside
    except ModuleNotFoundError as error:
        return "", f"The picture needs {error.name}: pip install 'openmsmq[drawing]'."
    states = {
        one.identifier: State(one.kind, one.state, one.sentence)
        for one in found.members
        if one.state
    }
    async with _ONE_AT_A_TIME:
        # It takes up to a second: other pages need not wait.
        return await asyncio.to_thread(draw_inside, found.image, states), ""


PAGES: Final = (Page("/map", show_map),)
