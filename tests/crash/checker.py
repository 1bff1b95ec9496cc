"""What an application knows, against what its queues hold in the end."""

from __future__ import annotations

import json


class Checker:
    """Follows the lines of workers; `check` compares them with what the queues hold."""

    def __init__(self) -> None:
        self.sent: dict[str, set[int]] = {"kept": set(), "pulled": set()}
        self.maybe_sent: dict[str, set[int]] = {"kept": set(), "pulled": set()}
        self.received: list[int] = []
        self.maybe_received = 0
        self.committed: list[list[int]] = []
        self.maybe_committed: list[list[int]] = []
        self.aborted: set[int] = set()
        self.taken: set[int] = set()
        self.maybe_taken: list[list[int]] = []
        self.highest = 0
        self.endings: dict[str, int] = {}
        self._open: list[object] | None = None

    def line(self, raw: bytes) -> None:
        """Take one line of a worker."""
        words = json.loads(raw)
        word, values = words[0], words[1:]
        if word in ("kept?", "pulled?", "commit?", "take?", "pull?"):
            self._open = words
            self._reserve(word, values[0])
        elif word in ("kept", "pulled"):
            self.sent[word] |= set(values[0])
            self._open = None
        elif word == "commit":
            self.committed.append(values[0])
            self._open = None
        elif word == "take":
            self.taken |= set(values[0])
            self._open = None
        elif word == "pull":
            self.received += values[0]
            self._open = None
        elif word == "aborted":
            self.aborted |= set(values[0])
            self._reserve(word, values[0])
        elif word == "ended":
            self.endings[values[0]] = self.endings.get(values[0], 0) + 1

    def worker_gone(self) -> None:
        """The worker ended; what it had begun may have happened."""
        match self._open:
            case [("kept?" | "pulled?") as word, numbers]:
                self.maybe_sent[str(word)[:-1]] |= set(numbers)  # type: ignore[call-overload]
            case ["commit?", numbers]:
                self.maybe_committed.append(list(numbers))  # type: ignore[call-overload]
            case ["take?", numbers]:
                self.maybe_taken.append(list(numbers))  # type: ignore[call-overload]
            case ["pull?", int(count)]:
                self.maybe_received += count
        self._open = None

    def check(self, kept: list[int], pulled: list[int], transacted: list[int]) -> None:
        """Compare with the contents of the three queues, in their order."""
        self._check_sent("kept", kept)
        assert self.sent["kept"] <= set(kept), "an acknowledged message is lost"
        self._check_sent("pulled", pulled)
        both = self.received + pulled
        assert len(both) == len(set(both)), "a message was received twice"
        lost = self.sent["pulled"] - set(both)
        assert len(lost) <= self.maybe_received, "more messages are lost than reads were cut off"
        self._check_transacted(transacted)

    def _check_sent(self, word: str, found: list[int]) -> None:
        assert found == sorted(set(found)), f"{word}: order is lost, or a message came twice"
        assert set(found) <= self.sent[word] | self.maybe_sent[word], f"{word}: from nowhere"

    def _check_transacted(self, found: list[int]) -> None:
        present = set(found)
        assert found == sorted(present), "order is lost, or a message came twice"
        assert not present & self.aborted, "an aborted message is visible"
        assert not present & self.taken, "a message was received twice"
        for place, numbers in enumerate(self.maybe_taken):
            # What a crash gave back may have been taken in other portions since.
            left = set(numbers).difference(self.taken, *self.maybe_taken[place + 1 :])
            assert left <= present or not left & present, "half a receive"
        gone = self.taken.union(*self.maybe_taken)
        for numbers in self.committed:
            assert set(numbers) - gone <= present, "a committed message is lost"
        for numbers in self.maybe_committed:
            left = set(numbers) - gone
            assert left <= present or not left & present, "half a transaction"
        certain = {number for numbers in self.committed for number in numbers}
        possible = {number for numbers in self.maybe_committed for number in numbers}
        assert present <= certain | possible, "a message from nowhere"

    def _reserve(self, word: str, numbers: object) -> None:
        if word not in ("pull?", "take?") and isinstance(numbers, list) and numbers:
            self.highest = max(self.highest, numbers[-1])
