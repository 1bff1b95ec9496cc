"""Doing several things at a time: each is a generator of pauses, and of calls to wait for."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from openmsmq.sim.remote.line import Ticket

if TYPE_CHECKING:
    from collections.abc import Callable

    from openmsmq.sim.world import World

Steps: TypeAlias = Generator[int | Ticket, None, Any]
"""Pauses in milliseconds, and calls to wait for."""


class Stopped(Exception):
    """What a hand was about to do makes no sense any more."""


class Stepper:
    """Takes steps in virtual time, until it is told to forget them all."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.done = False
        """Whether nothing is left to do."""
        self._generation = 0
        self._working = 0
        """How many generators have something left to do."""

    def _start(self, steps: Steps) -> None:
        self._working += 1
        self._later(0, self._go_on, steps)

    def _go_on(self, steps: Steps) -> None:
        try:
            step = next(steps)
        except StopIteration:
            self._working -= 1
            self.done = not self._working
            return
        if isinstance(step, int):
            self._later(step, self._go_on, steps)
        elif step.is_over:
            self._later(0, self._go_on, steps)
        else:
            step.then = partial(self._resume, self._generation, steps)

    def _resume(self, generation: int, steps: Steps) -> None:
        self.world.timeline.after(0, self._if_same, generation, self._go_on, (steps,))

    def _later(self, delay_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        self.world.timeline.after(delay_ms, self._if_same, self._generation, action, arguments)

    def _if_same(
        self, generation: int, action: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        if generation == self._generation:
            action(*arguments)

    def _stop_all(self) -> None:
        """Take none of the steps that were begun."""
        self._generation += 1
        self._working = 0
