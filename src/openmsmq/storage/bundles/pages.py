"""The pages of an LMDB file, looked at before LMDB does.

LMDB maps its file into memory and believes it. A damaged page can end the process without a word,
or let records vanish. So the file is read here the plain way, and everything is verified that LMDB
follows without asking: that a page is the one it should be, that its nodes lie inside it and in
order, that every page belongs to one place only, and that the trees have as many pages and records
as they say. What the values are is not looked at: each has its own checksum.

The trees are gone through level by level, so that a look at a limited number of pages sees those
through which most reads go.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from openmsmq.storage.files import FileOps, disk_error
from openmsmq.storage.layout import ADVICE
from openmsmq.storage.port import StoreDamaged

PAGES_LOOKED_AT_COUNT: Final = 1024
"""Pages that every opening looks at; all pages of a store of some megabytes."""

Read = Callable[[int, int], bytes]
"""Reads so many bytes of the file at an offset; fewer at its end."""

_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<QHHHH")
_LOWER_MIN: Final = _HEADER.size
_PAGES_OFFSET: Final = 12
_META: Final = struct.Struct("<II16x")
_TREE: Final = struct.Struct("<IHHQQQQQ")
_META_END: Final = struct.Struct("<QQ")
_META_BYTES: Final = _HEADER.size + _META.size + 2 * _TREE.size + _META_END.size
_NODE: Final = struct.Struct("<HHHH")
_NUMBER: Final = struct.Struct("<Q")
_BRANCH, _LEAF, _OVERFLOW, _META_PAGE = 1, 2, 4, 8
_ELSEWHERE, _TREE_NODE = 1, 2
_NO_PAGE: Final = 0xFFFFFFFFFFFFFFFF
_META_COUNT: Final = 2
_PAGE_SIZES: Final = frozenset(1 << bits for bits in range(9, 17))
_TREES_MAX_COUNT: Final = 16
"""Trees that the main one may name; ours has three."""


class _Tree(msgspec.Struct):
    """One tree of the file as its owner describes it, and what was found of it."""

    name: str
    depth: int
    branch_count: int
    leaf_count: int
    overflow_count: int
    entry_count: int
    root: int
    found: list[int]
    """Pages of the three kinds, and entries."""

    @property
    def is_free_list(self) -> bool:
        return self.name == "free"


class _Place(msgspec.Struct):
    """A page that is to be looked at, and what must be true of it."""

    page: int
    tree: _Tree
    depth: int
    low: bytes | None
    """No key may be less."""


class _Broken(Exception):
    """A page is not what it should be."""


def find_damage(read: Read, size_bytes: int, pages_max: int | None = None) -> Iterator[str]:
    """Return what is wrong with an LMDB file of which `read` gives parts.

    With `pages_max` only so many pages are looked at, the upper ones of the trees first.
    """
    try:
        page_bytes, last_page, free, main = _read_metas(read, size_bytes)
    except _Broken as problem:
        yield str(problem)
        return
    walk = _Walk(read, page_bytes, last_page, pages_max)
    yield from walk.look([free, main])


def _read_metas(read: Read, size_bytes: int) -> tuple[int, int, _Tree, _Tree]:
    """Read the two pages at the start that describe the file; the younger one counts."""
    first = _read_meta(read(_META_BYTES, 0), 0)
    page_bytes = first[0]
    second = _read_meta(read(_META_BYTES, page_bytes), 1)
    if second[0] != page_bytes:
        raise _Broken("the two pages at its start differ in the size of pages")
    # They take turns: each transaction writes the one that the transaction before did not.
    transactions = first[2], second[2]
    if transactions != (0, 0) and (
        abs(transactions[0] - transactions[1]) != 1 or transactions[0] % 2
    ):
        raise _Broken(f"the two pages at its start are of transactions {transactions}")
    _, last_page, _, free, main = max(first, second, key=lambda meta: meta[2])
    if (last_page + 1) * page_bytes > size_bytes:
        raise _Broken(f"{size_bytes} bytes of {(last_page + 1) * page_bytes} are left")
    return page_bytes, last_page, free, main


def _read_meta(data: bytes, page: int) -> tuple[int, int, int, _Tree, _Tree]:
    if len(data) < _META_BYTES:
        raise _Broken("it ends in the pages at its start")
    number, _, flags, _, _ = _HEADER.unpack_from(data)
    magic, version = _META.unpack_from(data, _HEADER.size)
    if (number, flags & _META_PAGE, magic, version) != (page, _META_PAGE, _MAGIC, _VERSION):
        raise _Broken(f"page {page} does not describe the file")
    offset = _HEADER.size + _META.size
    page_bytes = _TREE.unpack_from(data, offset)[0]
    if page_bytes not in _PAGE_SIZES:
        raise _Broken(f"page {page} gives {page_bytes} bytes as the size of pages")
    free = _read_tree(data, offset, "free")
    main = _read_tree(data, offset + _TREE.size, "main")
    last_page, transaction = _META_END.unpack_from(data, offset + 2 * _TREE.size)
    return page_bytes, last_page, transaction, free, main


def _read_tree(data: bytes, offset: int, name: str) -> _Tree:
    _, _, depth, branch, leaf, overflow, entries, root = _TREE.unpack_from(data, offset)
    return _Tree(name, depth, branch, leaf, overflow, entries, root, [0, 0, 0, 0])


class _Walk:
    """One way through all trees of a file."""

    def __init__(self, read: Read, page_bytes: int, last_page: int, pages_max: int | None) -> None:
        self._read = read
        self._page_bytes = page_bytes
        self._last_page = last_page
        self._pages_max = pages_max
        # One byte for each page says whether something owns it.
        self._owned = bytearray(last_page + 1)
        self._waiting: deque[_Place] = deque()
        self._trees: list[_Tree] = []
        self._looked = 0

    def look(self, trees: list[_Tree]) -> Iterator[str]:
        """Go through the trees and those that they name; say what is wrong."""
        for tree in trees:
            yield from self._begin(tree)
        broken = False
        while self._waiting:
            if self._pages_max is not None and self._looked >= self._pages_max:
                return
            place = self._waiting.popleft()
            try:
                yield from self._look_at(place)
            except _Broken as problem:
                broken = True
                yield f"page {place.page} {problem}"
        # Of a tree with a broken page the numbers are wrong anyway.
        if not broken:
            yield from self._count()

    def _begin(self, tree: _Tree) -> Iterator[str]:
        self._trees.append(tree)
        if len(self._trees) > _TREES_MAX_COUNT:
            yield f"it has more than {_TREES_MAX_COUNT} trees"
        elif tree.root != _NO_PAGE:
            self._waiting.append(_Place(tree.root, tree, 1, None))

    def _own(self, page: int, count: int = 1) -> None:
        end = page + count
        if not _META_COUNT <= page < end <= self._last_page + 1:
            raise _Broken(f"points to page {page}, which the file does not have")
        if any(self._owned[page:end]):
            raise _Broken(f"points to page {page}, which belongs to something else")
        self._owned[page:end] = b"\1" * count

    def _look_at(self, place: _Place) -> Iterator[str]:
        tree, page_bytes = place.tree, self._page_bytes
        self._looked += 1
        if place.depth == 1:
            self._own(place.page)
        data = self._read(page_bytes, place.page * page_bytes)
        number, _, flags, lower, upper = _HEADER.unpack_from(data)
        if number != place.page:
            raise _Broken(f"says that it is page {number}")
        expected = _LEAF if place.depth == tree.depth else _BRANCH
        if flags != expected:
            raise _Broken(f"of tree {tree.name} at depth {place.depth} is of kind {flags}")
        if not _LOWER_MIN <= lower <= upper <= page_bytes or lower % 2:
            raise _Broken("has no valid bounds")
        count = (lower - _LOWER_MIN) // 2
        if count < (1 if expected == _LEAF or tree.is_free_list else 2):
            raise _Broken("is empty")
        offsets = struct.unpack_from(f"<{count}H", data, _LOWER_MIN)
        if min(offsets) < upper or max(offsets) + _NODE.size > page_bytes:
            raise _Broken("has a node outside")
        tree.found[expected - 1] += 1
        if expected == _BRANCH:
            self._look_at_branch(place, data, offsets)
        else:
            tree.found[3] += count
            yield from self._look_at_leaf(place, data, offsets)

    def _look_at_branch(self, place: _Place, data: bytes, offsets: tuple[int, ...]) -> None:
        low = place.low
        for index, offset in enumerate(offsets):
            first, second, third, key_bytes = _NODE.unpack_from(data, offset)
            key = data[offset + _NODE.size : offset + _NODE.size + key_bytes]
            if offset + _NODE.size + key_bytes > self._page_bytes:
                raise _Broken("has a node that does not end inside")
            if index:
                self._check_order(place.tree, low, key, is_first=index == 1)
                low = key
            page = first | second << 16 | third << 32
            self._own(page)
            self._waiting.append(_Place(page, place.tree, place.depth + 1, low))

    def _look_at_leaf(self, place: _Place, data: bytes, offsets: tuple[int, ...]) -> Iterator[str]:
        tree, before = place.tree, place.low
        page_bytes = self._page_bytes
        is_free_list, is_main = tree.is_free_list, tree.name == "main"
        unpack = _NODE.unpack_from
        for index, offset in enumerate(offsets):
            low, high, flags, key_bytes = unpack(data, offset)
            start = offset + 8 + key_bytes
            value_bytes = low | high << 16
            key = data[offset + 8 : start]
            end = start + (_NUMBER.size if flags & _ELSEWHERE else value_bytes)
            if end > page_bytes or not key_bytes:
                raise _Broken("has a node that does not end inside")
            # Most keys need no closer look; this runs once for each record.
            if is_free_list or (before is not None and key <= before):
                self._check_order(tree, before, key, is_first=index == 0)
            before = key
            if flags or is_free_list or is_main:
                yield from self._look_at_value(tree, data[start:end], flags, key, value_bytes)

    def _check_order(
        self, tree: _Tree, before: bytes | None, key: bytes, *, is_first: bool
    ) -> None:
        if tree.is_free_list:
            if len(key) != _NUMBER.size:
                raise _Broken("has a key that is no number")
            # Numbers are compared as such.
            key = key[::-1]
            before = None if before is None else before[::-1]
        if before is not None and (key < before or (key == before and not is_first)):
            raise _Broken("has keys in the wrong order")

    def _look_at_value(
        self, tree: _Tree, stored: bytes, flags: int, key: bytes, value_bytes: int
    ) -> Iterator[str]:
        if flags == _TREE_NODE and tree.name == "main" and len(stored) == _TREE.size:
            yield from self._begin(_read_tree(stored, 0, key.decode("ascii", "replace")))
            return
        if flags not in (0, _ELSEWHERE) or tree.name == "main":
            raise _Broken(f"has a node of kind {flags}")
        if flags == _ELSEWHERE:
            stored = self._look_elsewhere(tree, _NUMBER.unpack(stored)[0], value_bytes)
        if tree.is_free_list:
            self._look_at_free(stored)

    def _look_elsewhere(self, tree: _Tree, page: int, value_bytes: int) -> bytes:
        """Look at the pages of a value that has its own; give it if it lists free pages."""
        count = (_HEADER.size + value_bytes + self._page_bytes - 1) // self._page_bytes
        self._own(page, count)
        offset = page * self._page_bytes
        header = self._read(_HEADER.size, offset)
        number, _, flags, _, _ = _HEADER.unpack_from(header)
        pages = int.from_bytes(header[_PAGES_OFFSET:], "little")
        if (number, flags, pages) != (page, _OVERFLOW, count):
            raise _Broken(f"points to page {page}, which is not the value that it should be")
        tree.found[2] += count
        if not tree.is_free_list:
            return b""
        return self._read(value_bytes, offset + _HEADER.size)

    def _look_at_free(self, value: bytes) -> None:
        numbers = struct.unpack_from(f"<{len(value) // _NUMBER.size}Q", value)
        if not numbers or len(value) % _NUMBER.size or numbers[0] > len(numbers) - 1:
            raise _Broken("has a list of free pages that does not end")
        pages = numbers[1 : numbers[0] + 1]
        if list(pages) != sorted(pages, reverse=True):
            raise _Broken("has a list of free pages in the wrong order")
        # A look at a limited number of pages has no time for each of these.
        for page in pages if self._pages_max is None else {*pages[:1], *pages[-1:]}:
            self._own(page)

    def _count(self) -> Iterator[str]:
        for tree in self._trees:
            told = [tree.branch_count, tree.leaf_count, tree.overflow_count, tree.entry_count]
            if tree.found != told:
                yield (
                    f"tree {tree.name} should have {told} branches, leaves, further pages and "
                    f"records, and has {tree.found}"
                )


def require_sound(files: FileOps, path: Path, *, thorough: bool) -> None:
    """Raise `StoreDamaged` if LMDB must not read the file."""
    # It would take an empty one for a new one.
    if not (path.exists() and path.stat().st_size):
        raise StoreDamaged(f"{path} is missing or empty: {ADVICE}")
    problem = next(damaged_pages(files, path, thorough=thorough), None)
    if problem is not None:
        raise StoreDamaged(f"{problem}: {ADVICE}")


def damaged_pages(files: FileOps, path: Path, *, thorough: bool) -> Iterator[str]:
    """Return what is wrong with the pages of the file; LMDB must not read it then.

    Unless it is `thorough` this takes the same short time however large the file is, and what it
    does not reach is left for whoever reads there.
    """
    file = files.open(path, write=False)
    try:
        problems = find_damage(
            lambda length, offset: files.read(file, length, offset),
            files.size_bytes(file),
            None if thorough else PAGES_LOOKED_AT_COUNT,
        )
        for problem in problems:
            yield f"{path} is damaged: {problem}"
    except OSError as error:
        raise disk_error(error, "read the records", path) from error
    finally:
        files.close(file)
