"""HTTP between nodes: requests that come late, twice or not at all, and answers that do.

Requests to one URL arrive in the order in which they were posted, and their answers come back in
it, as over one connection. If that breaks, none of those under way has an answer, whether it has
arrived or not. What is left of an old connection may still arrive after the next one has begun.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import msgspec

from openmsmq.protocol.posts import OutgoingPost, PostAnswer, PostFailure, ReceivedPost
from openmsmq.sim.checks.post_watch import PostWatch
from openmsmq.sim.forged_receipts import forged
from openmsmq.wire.srmp.envelope import Envelope

if TYPE_CHECKING:
    import random

    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World

_TIMEOUT_MS: Final = 30_000
_BREAKS: Final = 0.02
"""How often a connection breaks with a request."""
_TWICE: Final = 0.02
"""How often something between the nodes brings a request twice."""
_LATE: Final = 0.02
_LATE_MAX_MS: Final = 60_000
_FORGED: Final = 0.1
"""How often a stranger acknowledges what he has overheard."""
_FAILS_OTHERWISE: Final = 0.02
"""How often somebody on the way answers in the place of the other side."""
_OTHER_ANSWERS: Final = (502, 503, 404, 302)


class Lane(msgspec.Struct, eq=False):
    """A connection from a node to a URL."""

    node: Node
    boot: int
    target: Node | None
    calls: list[int] = []
    """Those under way, in their order."""
    arrival_ms: int = 0
    answer_ms: int = 0
    broken: bool = False


class Asked(msgspec.Struct, eq=False):
    """A request that has arrived and is not answered."""

    lane: Lane
    call: int
    body: bytes


class PostNetwork:
    """All requests and answers."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._lanes: dict[tuple[int, int, str], Lane] = {}
        self._asked: dict[tuple[int, int, int], Asked] = {}
        self._come: dict[tuple[int, int], list[ReceivedPost]] = {}
        """What has come to a node and was not handed in yet."""
        self._last_number = 0
        self.watch = PostWatch(world)
        self.post_count = 0
        self.arriving_count = 0
        """Requests on their way: one that comes late may bring an express message once more."""

    # What nodes ask for.

    def post(self, node: Node, post: OutgoingPost) -> None:
        """Carry a request to its URL."""
        self.post_count += 1
        stream = self.watch.leaves(node, post)
        if stream is not None and self._chance() < _FORGED:
            self._later(self._rng.randrange(_LATE_MAX_MS), self._forges, node, stream)
        key = node.index, node.boot, post.url
        lane = self._lanes.get(key)
        if lane is None or lane.broken:
            host = urlsplit(post.url).hostname or ""
            lane = self._lanes[key] = Lane(node, node.boot, self._node_at(host))
        lane.calls.append(post.call)
        self._trace(node, f"posts {post.call} to {post.url}: {self.watch.text_of(post)}")
        target, chance = lane.target, self._chance()
        now_ms = self._world.timeline.now_ms
        blocked_ms = 0 if target is None else self._world.network.blocked_ms(node, target)
        if target is None or not target.up or blocked_ms:
            delay_ms = _TIMEOUT_MS if blocked_ms else self._delay_ms()
            self._later(delay_ms, self._breaks, lane, PostFailure.UNREACHABLE)
            return
        if chance < _BREAKS:
            self._later(self._rng.randrange(1_000), self._breaks, lane, PostFailure.LOST)
            if self._rng.random() < 0.5:
                return
        at_ms = max(now_ms + self._delay_ms(), lane.arrival_ms)
        if self._chance() < _LATE:
            at_ms += self._rng.randrange(_LATE_MAX_MS)
        lane.arrival_ms = at_ms
        self.arriving_count += 1
        self._world.timeline.after(at_ms - now_ms, self._arrives, lane, post, 1)
        if self._chance() < _TWICE:
            self.arriving_count += 1
            more_ms = at_ms - now_ms + self._rng.randrange(_LATE_MAX_MS)
            self._world.timeline.after(more_ms, self._arrives, lane, post, 2)
        self._later(_TIMEOUT_MS, self._times_out, lane, post.call)

    def _arrives(self, lane: Lane, post: OutgoingPost, time: int) -> None:
        self.arriving_count -= 1
        target = lane.target
        assert target is not None
        if not target.up:
            self._breaks(lane, PostFailure.LOST)
            return
        self._last_number += 1
        number = self._last_number
        if time == 1:
            if self._chance() < _FAILS_OTHERWISE and not lane.broken:
                self._answers(lane, post.call, self._rng.choice(_OTHER_ANSWERS))
                if self._rng.random() < 0.5:
                    return
            self._asked[target.index, target.boot, number] = Asked(lane, post.call, post.body)
        else:
            self._asked[target.index, target.boot, number] = Asked(lane, -1, post.body)
        parts = urlsplit(post.url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        headers = {name.lower(): value for name, value in post.headers}
        queue = unquote(parts.path)[len("/msmq/") :].replace("/", "\\")
        received = ReceivedPost(
            number, queue, path, parts.hostname or "", headers, post.body, lane.node.address
        )
        self._comes(target, received)

    def _comes(self, target: Node, post: ReceivedPost) -> None:
        """Let a post wait for the next turn of a node: those of one turn are handed in together."""
        key = target.index, target.boot
        waiting = self._come.setdefault(key, [])
        waiting.append(post)
        if len(waiting) == 1:
            target.later(target.habits.turn_ms, self._hand_in, target)

    def _hand_in(self, target: Node) -> None:
        posts = self._come.pop((target.index, target.boot))
        target.input("posts_received", posts, target.clock.now())

    def answer(self, node: Node, answer: PostAnswer) -> None:
        """Carry an answer back."""
        asked = self._asked.pop((node.index, node.boot, answer.number), None)
        if asked is None:
            return
        self.watch.answers(node, asked.body, answer.status)
        self._trace(node, f"answers {asked.call} of {asked.lane.node.name}: {answer.status}")
        if asked.call < 0:
            return
        if self._chance() < _BREAKS:
            self._later(self._rng.randrange(1_000), self._breaks, asked.lane, PostFailure.LOST)
            return
        self._answers(asked.lane, asked.call, answer.status)

    def _answers(self, lane: Lane, call: int, status: int) -> None:
        now_ms = self._world.timeline.now_ms
        at_ms = max(now_ms + self._delay_ms(), lane.answer_ms)
        lane.answer_ms = at_ms
        self._world.timeline.after(at_ms - now_ms, self._is_answered, lane, call, status)

    def _is_answered(self, lane: Lane, call: int, status: int) -> None:
        if self._ends(lane, call):
            lane.node.input("post_answered", call, status, lane.node.clock.now())

    # What goes wrong.

    def node_gone(self, node: Node) -> None:
        """A node lost power: nobody hears what it was asked."""
        for come in [key for key in self._come if key[0] == node.index]:
            del self._come[come]
        for key in [key for key in self._asked if key[0] == node.index]:
            lane = self._asked.pop(key).lane
            self._later(self._rng.randrange(_TIMEOUT_MS), self._breaks, lane, PostFailure.LOST)

    def _breaks(self, lane: Lane, failure: PostFailure) -> None:
        """A connection is gone; all that is under way by it has no answer."""
        lane.broken = True
        for call in list(lane.calls):
            if self._ends(lane, call):
                now = lane.node.clock.now()
                lane.node.input("post_failed", call, failure, now, "the connection is gone")

    def _forges(self, node: Node, envelope: Envelope) -> None:
        """Somebody who has nothing to do with a stream says that it has come."""
        if not node.up or envelope.stream is None:
            return
        target, body = forged(envelope.stream, envelope.id, self._rng)
        self._last_number += 1
        headers = {"content-type": "text/xml"}
        queue = "private$\\order_queue$"
        post = ReceivedPost(self._last_number, queue, target, "", headers, body, "10.9.9.9")
        self._comes(node, post)

    def _times_out(self, lane: Lane, call: int) -> None:
        if call in lane.calls:
            self._breaks(lane, PostFailure.LOST)

    def _ends(self, lane: Lane, call: int) -> bool:
        """End a call; say whether its node still waits for it."""
        if call not in lane.calls:
            return False
        lane.calls.remove(call)
        return lane.node.up and lane.node.boot == lane.boot

    # Internals.

    def _node_at(self, host: str) -> Node | None:
        for node in self._world.nodes:
            if node.name.casefold() == host.casefold():
                return node
        return None

    def _chance(self) -> float:
        """Draw whether something goes wrong; while all is calm, nothing does."""
        return 1.0 if self._world.calm else self._rng.random()

    def _delay_ms(self) -> int:
        return self._world.network.delay_ms()

    def _later(self, delay_ms: int, action: Callable[..., None], *arguments: object) -> None:
        self._world.timeline.after(delay_ms, action, *arguments)

    def _trace(self, node: Node, text: str) -> None:
        if self._world.trace.wanted:
            self._world.trace.note(node.index, "post", text)
