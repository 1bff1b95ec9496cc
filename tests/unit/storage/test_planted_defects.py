"""Defects of the store, one line each, and the test that must notice it.

A defect is put into the function that it names while the test runs, as the simulator's are. A test
that still passes then shows nothing.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, settings

from openmsmq.storage.base import Base
from openmsmq.storage.engine import STAYING_MIN_BYTES
from openmsmq.storage.files import FileOps
from tests.sim.mutants import Mutant, applied
from tests.unit.storage import damaged_pages
from tests.unit.storage import test_aside as aside
from tests.unit.storage import test_base as base
from tests.unit.storage import test_engine as engine
from tests.unit.storage import test_frames as frames
from tests.unit.storage import test_journal as journal
from tests.unit.storage import test_maintenance as maintenance
from tests.unit.storage import test_recovery as recovery
from tests.unit.storage.backups import test_snapshot as snapshot
from tests.unit.storage.backups import test_writing as writing
from tests.unit.storage.bundles import test_pages as pages
from tests.unit.storage.bundles import test_rewriting as bundles
from tests.unit.storage.bundles import test_staying as staying
from tests.unit.storage.replication import test_shown as shown


class Defect(NamedTuple):
    """A defect and who notices it."""

    name: str
    where: str
    old: str
    new: str
    test: Callable[..., None]
    arguments: Mapping[str, Any] = MappingProxyType({})
    """What the test gets beside its fixtures."""


DEFECTS = [
    # The journal.
    Defect(
        "a gap of one batch at the change of files is accepted",
        "storage.journal:Journal.recover",
        "self.last_sequence + 1:",
        "self.last_sequence + 2:",
        journal.test_a_batch_that_is_missing_between_the_files_is_damage,
    ),
    Defect(
        "what is replayed is not synced before",
        "storage.journal:Journal._read",
        "self._files.sync(segment.file)",
        "pass",
        recovery.test_what_a_start_has_seen_survives_a_loss_of_power,
    ),
    Defect(
        "a commit is not synced",
        "storage.journal:Journal.append",
        "self._files.write_through(",
        "self._files.write(",
        recovery.test_a_commit_that_has_returned_survives_a_loss_of_power,
    ),
    Defect(
        "several batches of one record are counted as one",
        "storage.journal:Journal.append",
        "self.last_sequence += len(payloads)",
        "self.last_sequence += 1",
        shown.test_several_come_to_the_disk_with_one_write_and_in_their_order,
    ),
    Defect(
        "of several batches of one record a start sees the first",
        "storage.frames:Framing.read_run",
        "run += record.batches()",
        "run += record.batches()[:1]",
        shown.test_several_come_to_the_disk_with_one_write_and_in_their_order,
    ),
    Defect(
        "each batch that was shown gets a write of its own",
        "storage.engine:JournaledStore.catch_up",
        "self._write(self._shown)",
        "[self._write([each]) for each in self._shown]",
        shown.test_several_come_to_the_disk_with_one_write_and_in_their_order,
    ),
    Defect(
        "only the batch that comes has room in the journal, and not those that were shown",
        "storage.engine:JournaledStore._make_room",
        "payload_bytes + self.shown_bytes",
        "payload_bytes",
        shown.test_files_of_the_journal_change_under_batches_that_are_shown,
    ),
    Defect(
        "a cut file is taken as it is",
        "storage.journal:Journal._check_sizes",
        "segment.size_bytes < noted",
        "segment.size_bytes < 0",
        journal.test_a_journal_file_that_was_cut_anywhere_is_damage,
        {"kind": "fresh", "name": journal.JOURNAL_NAMES[0]},
    ),
    Defect(
        "a cut of one byte is taken as it is",
        "storage.journal:Journal._check_sizes",
        "segment.size_bytes < noted",
        "segment.size_bytes < noted - 1",
        journal.test_a_journal_file_that_was_cut_anywhere_is_damage,
        {"kind": "fresh", "name": journal.JOURNAL_NAMES[1]},
    ),
    Defect(
        "an emptied file is taken for an unused one",
        "storage.journal:Journal.recover",
        "self.last_sequence < note.written",
        "self.last_sequence < note.written - 1",
        journal.test_a_journal_file_that_was_emptied_in_its_place_is_damage,
        {"kind": "recycled"},
    ),
    Defect(
        "the first batch of a turn is not noted",
        "storage.engine:JournaledStore._note",
        "self._base.write([], note=self._journal.note)",
        "pass",
        journal.test_a_journal_file_that_was_emptied_in_its_place_is_damage,
        {"kind": "recycled"},
    ),
    Defect(
        "a slice does not note how far the journal went",
        "storage.engine:JournaledStore._move_slice",
        "note=self._journal.note",
        "note=None",
        journal.test_the_journal_is_known_to_reach_what_a_checkpoint_saw,
    ),
    Defect(
        "a file is made shorter before that is noted",
        "storage.journal:Journal.note_before_switch",
        "wanted >= self._segments[place].size_bytes",
        "True",
        engine.test_a_file_that_is_made_shorter_never_looks_cut,
    ),
    Defect(
        "whole records behind a broken one are not looked for",
        "storage.journal:Journal._read",
        "if later is not None:",
        "if False:",
        journal.test_a_flipped_bit_is_noticed_unless_it_looks_like_a_torn_write,
        {"kind": "fresh"},
    ),
    Defect(
        "leftovers of an earlier turn count",
        "storage.frames:Framing.find_later",
        "number > sequence and",
        "",
        journal.test_a_flipped_bit_behind_the_end_changes_nothing,
    ),
    Defect(
        "the numbers of records need not go on",
        "storage.frames:Framing.read_run",
        "record.sequence == run[-1].sequence + 1",
        "record.sequence > run[-1].sequence",
        frames.test_reading_stops_where_the_numbers_stop,
    ),
    Defect(
        "each mark costs the checksum of all that it claims",
        "storage.frames:_Beginnings.crc_of",
        "crc32_combine(begun ^ self._up_to(start), self._up_to(end), end - start)",
        "crc32(self._data[start:end], begun)",
        frames.test_no_content_makes_looking_for_records_long,
    ),
    Defect(
        "a start pays for each mark in the bodies of messages",
        "storage.frames:_Beginnings.crc_of",
        "crc32_combine(begun ^ self._up_to(start), self._up_to(end), end - start)",
        "crc32(self._data[start:end], begun)",
        recovery.test_a_start_reads_no_more_for_bodies_full_of_records,
        {"is_clean": False, "is_old": False},
    ),
    Defect(
        "a record that ends with the file is not found",
        "storage.frames:Framing.find_later",
        "body + length <= size",
        "body + length < size",
        frames.test_a_whole_record_is_found_wherever_it_stands,
    ),
    Defect(
        "an old store becomes new before its journal is in the base",
        "storage.engine:JournaledStore.reframe",
        "self.checkpoint()",
        "pass",
        recovery.test_an_old_store_is_read_and_becomes_a_new_one,
    ),
    Defect(
        "a new store of an old one does not begin at the start of its file",
        "storage.journal:Journal.begin_anew",
        "self.rewind()",
        "self._offset = 100",
        recovery.test_an_old_store_is_read_and_becomes_a_new_one,
    ),
    # The base.
    Defect(
        "the checksum of a value is not looked at",
        "storage.base:Base.get",
        "self._damaged(key) if value is None else value",
        "stored[:-4]",
        base.test_a_damaged_value_is_an_error_for_every_way_to_read_it,
    ),
    # Bundles.
    Defect(
        "the checksum of a bundle is not looked at",
        "storage.bundles.bundle:decode",
        "not is_whole(last, stored)",
        "False",
        bundles.test_a_damaged_bundle_is_an_error_for_every_way_to_read_it,
    ),
    Defect(
        "a bundle is made over a record that lies between",
        "storage.bundles.rewriting:_is_free",
        "following is not None and following <= last",
        "False",
        bundles.test_what_lies_between_two_records_keeps_them_out_of_one_bundle,
    ),
    Defect(
        "a bundle is made over another one",
        "storage.bundles.rewriting:_is_free",
        "reaching is None or reaching.first > last",
        "True",
        bundles.test_what_lies_between_two_records_keeps_them_out_of_one_bundle,
    ),
    Defect(
        "what is left of a bundle goes with what is deleted",
        "storage.bundles.rewriting:_change_bundles",
        "_change(work, bundle, own, bundles, files)",
        "work.drop(bundle, files)",
        bundles.test_a_bundle_that_is_emptied_piece_by_piece_ends_as_single_records,
    ),
    Defect(
        "the last records of a bundle stay when a range is cleared",
        "storage.bundles.rewriting:clearing_of",
        "dict.fromkeys(gone)",
        "dict.fromkeys(key for key in gone if key != bundle.last)",
        bundles.test_clearing_a_range_leaves_what_is_outside_of_it,
    ),
    Defect(
        "a record that is put into a bundle is not seen",
        "storage.bundles.rewriting:_change_bundles",
        "own[key] = value",
        "pass",
        bundles.test_a_record_inside_of_a_bundle_is_changed,
    ),
    Defect(
        "deletions may write as much as they like",
        "storage.base:Base.write",
        "not puts_any and len(changes) > 1",
        "False",
        bundles.test_deletions_write_little_at_once,
    ),
    Defect(
        "hidden records at the front of a bundle are not remembered",
        "storage.bundles.reading:Reading._take",
        "if lead and not self._found:",
        "if False:",
        bundles.test_emptying_a_queue_steps_over_each_deleted_record_once,
        {"reverse": False},
    ),
    Defect(
        "pages are not looked at before LMDB is asked",
        "storage.bundles.pages:damaged_pages",
        "for problem in problems:",
        "for problem in ():",
        pages.test_opening_says_which_page_is_damaged_and_what_to_do,
    ),
    Defect(
        "keys in the wrong order are accepted",
        "storage.bundles.pages:_Walk._check_order",
        "key < before",
        "False",
        pages.test_each_kind_of_damage_is_named,
        {
            "kind": pages.LEAF,
            "change": pages.swap_first_keys,
            "said": "keys in the wrong order",
        },
    ),
    Defect(
        "a page may belong to two places",
        "storage.bundles.pages:_Walk._own",
        "if any(self._owned[page:end]):",
        "if False:",
        pages.test_a_page_that_two_places_point_to_is_noticed,
    ),
    Defect(
        "records that vanished are not missed",
        "storage.bundles.pages:_Walk._count",
        "tree.found != told",
        "False",
        pages.test_a_record_that_vanished_is_noticed_by_the_numbers,
    ),
    Defect(
        "the only free page of a list is counted twice",
        "storage.bundles.pages:_Walk._look_at_free",
        "{*pages[:1], *pages[-1:]}",
        "[*pages[:1], *pages[-1:]]",
        pages.test_a_file_that_lmdb_wrote_is_good_at_every_moment,
    ),
    Defect(
        "a check reads on where LMDB would believe a damaged page",
        "storage.maintenance:_check_base",
        "thorough=True",
        "thorough=False",
        maintenance.test_a_check_looks_at_every_page,
    ),
    Defect(
        "compacting forgets how far the journal went",
        "storage.maintenance:_copy",
        ", note=source.note",
        "",
        maintenance.test_compacting_keeps_every_record_and_gives_space_back,
    ),
    # Checkpoints.
    Defect(
        "the journal is said to be applied before it is",
        "storage.engine:JournaledStore._move_slice",
        "self._sealed_sequence if last else None",
        "self._sealed_sequence",
        engine.test_one_commit_moves_only_a_part_of_a_checkpoint,
    ),
    Defect(
        "a younger value is moved before its range is cleared",
        "storage.engine:JournaledStore._move_slice",
        "while memtable.gone:",
        "while False:",
        engine.test_a_range_is_cleared_before_a_younger_value_of_it_is_moved,
    ),
    # What is set aside.
    Defect(
        "what is set aside is not synced before its batch",
        "storage.aside:Aside.write",
        "self._files.write_through(",
        "self._files.write(",
        aside.test_after_a_loss_of_power_anywhere_everything_goes_on,
        {"stride": 5, "least": STAYING_MIN_BYTES},
    ),
    Defect(
        "the name of a new file is not synced",
        "storage.aside:Aside.write",
        "self._files.sync_directory(self._directory)",
        "pass",
        aside.test_after_a_loss_of_power_anywhere_everything_goes_on,
        {"stride": 5, "least": STAYING_MIN_BYTES},
    ),
    Defect(
        "a file is used again while a start would read it",
        "storage.aside:Aside.applied",
        "when > sequence",
        "False",
        aside.test_what_was_dropped_while_a_checkpoint_ran_is_found_by_the_next_start,
    ),
    Defect(
        "a file is used again at once",
        "storage.aside:Aside.drop",
        "self._dropped.append((sequence, note))",
        "self._free[note.file] = note.size_bytes",
        aside.test_a_file_is_not_used_again_while_a_start_would_read_it,
    ),
    Defect(
        "a start does not take what a batch took",
        "storage.engine:JournaledStore._replay_batch",
        "self._take(content.moves, record.sequence, is_replayed=True)",
        "pass",
        aside.test_after_a_loss_of_power_anywhere_everything_goes_on,
        {"stride": 5, "least": STAYING_MIN_BYTES},
    ),
    Defect(
        "a start takes only what the last checkpoint knew",
        "storage.engine:JournaledStore._replay_batch",
        "content.moves.aside.items()",
        "()",
        aside.test_after_a_loss_of_power_anywhere_everything_goes_on,
        {"stride": 5, "least": STAYING_MIN_BYTES},
    ),
    Defect(
        "a start does not delete the ranges of a batch that takes",
        "storage.engine:JournaledStore._replay_batch",
        "for start, stop in content.ranges:",
        "for start, stop in ():",
        aside.test_ranges_are_deleted_before_anything_is_taken_also_by_a_start,
    ),
    Defect(
        "the base says what is aside now, not as of its checkpoint",
        "storage.engine:JournaledStore._move_slice",
        "self._sealed_aside if last",
        "dict(self._aside.notes) if last",
        aside.test_what_was_dropped_while_a_checkpoint_ran_is_found_by_the_next_start,
    ),
    Defect(
        "the base does not say what is aside",
        "storage.engine:JournaledStore._move_slice",
        "self._sealed_aside if last else None",
        "None",
        aside.test_after_a_loss_of_power_anywhere_everything_goes_on,
        {"stride": 5, "least": STAYING_MIN_BYTES},
    ),
    Defect(
        "a file of an earlier batch is taken for the right one",
        "storage.aside:Aside.read",
        "record.sequence == note.sequence",
        "True",
        aside.test_a_damaged_file_is_noticed_by_a_start_and_by_a_check,
        {"harm": "older", "taken": False},
    ),
    Defect(
        "what is aside is not read at the start",
        "storage.aside:Aside.begin",
        "self.values(name)",
        "pass",
        aside.test_a_damaged_file_is_noticed_by_a_start_and_by_a_check,
        {"harm": "changed", "taken": False},
    ),
    Defect(
        "a file in which something stays is used again",
        "storage.aside:Aside.applied",
        "note.file in self._stayed.uses",
        "False",
        staying.test_a_file_in_which_something_stays_is_not_used_again,
    ),
    Defect(
        "a start removes a file in which something stays",
        "storage.aside:Aside.begin",
        "known.update(map(self._stayed.path, self._stayed.uses))",
        "pass",
        staying.test_what_stays_is_read_and_deleted_like_everything_else,
    ),
    Defect(
        "a start gives the number of a file to others in which something stays",
        "storage.aside:Aside.__init__",
        "[*stayed.uses, ",
        "[",
        staying.test_what_stays_is_read_and_deleted_like_everything_else,
    ),
    Defect(
        "a file in which nothing stays any more is never used again",
        "storage.bundles.stayed_files:StayedFiles.stored",
        "self.left(number, use.size_bytes)",
        "pass",
        staying.test_what_stays_is_read_and_deleted_like_everything_else,
    ),
    Defect(
        "a back-up lacks what stays",
        "storage.aside:Aside.hold",
        "in self._stayed.uses.items()",
        "in ()",
        staying.test_a_back_up_has_what_stays,
    ),
    Defect(
        "files are kept that are mostly in vain",
        "storage.bundles.stayed_files:StayedFiles.most_wasteful",
        "wasted_bytes <= self._used_bytes + WASTED_MAX_BYTES",
        "True",
        staying.test_the_base_takes_in_what_is_left_of_files_that_are_mostly_in_vain,
    ),
    Defect(
        "a whole file is taken in at once",
        "storage.bundles.rewriting:gathering_of",
        "work.put_bytes < most_bytes",
        "True",
        staying.test_it_is_taken_in_a_little_at_a_time,
    ),
    Defect(
        "what is taken in is not there any more",
        "storage.bundles.rewriting:gathering_of",
        "work.keep(list(zip(bundle.keys, bundle.values, strict=True)))",
        "pass",
        staying.test_it_is_taken_in_a_little_at_a_time,
    ),
    Defect(
        "what is left of a piece is written into the base",
        "storage.bundles.rewriting:_change",
        "if stay is None:",
        "if True:",
        staying.test_what_goes_out_of_the_middle_needs_no_place_on_a_full_disk,
    ),
    Defect(
        "a part of a piece begins where the piece does",
        "storage.bundles.staying:parts_of",
        "stay.offset + ends[start]",
        "stay.offset",
        staying.test_what_is_left_stays_where_it_is_when_something_goes_or_changes,
        {"gone": (0,)},
    ),
    Defect(
        "what is changed within a piece is lost",
        "storage.bundles.rewriting:_change",
        "for key, value in own.items() if value is not None",
        "for key, value in ()",
        staying.test_what_is_left_stays_where_it_is_when_something_goes_or_changes,
        {"gone": (0,)},
    ),
    Defect(
        "what goes out of a file is not counted",
        "storage.bundles.rewriting:Rewriting.drop",
        "use.used_bytes - stay.length",
        "use.used_bytes - 1",
        staying.test_what_is_left_stays_where_it_is_when_something_goes_or_changes,
        {"gone": (0,)},
    ),
    Defect(
        "whether a message is there is found out from its bytes",
        "storage.base:Base.contains",
        "bundle is not None and key in bundle",
        "bundle is not None and bundle.get(key) is not None",
        staying.test_what_goes_is_not_read,
    ),
    Defect(
        "a start does not miss a file in which something stays",
        "storage.opening:_open",
        "base.stayed.problems()",
        "()",
        staying.test_damage_of_a_file_is_noticed,
        {"damage": "missing"},
    ),
    Defect(
        "a start takes a file that was cut for a whole one",
        "storage.bundles.stayed_files:StayedFiles.problems",
        "size_bytes < use.size_bytes",
        "False",
        staying.test_damage_of_a_file_is_noticed,
        {"damage": "cut"},
    ),
    Defect(
        "what is younger in memory hides what stays",
        "storage.memtable:Memtable.is_untouched",
        "self._index.between(first, stop, 1) or ",
        "",
        staying.test_where_something_is_or_was_a_moment_ago_nothing_stays,
        {"touched": "put"},
    ),
    Defect(
        "a range that is gone hides what stays",
        "storage.memtable:Memtable.is_untouched",
        " or self.outside_gone(first, stop) != [(first, stop)]",
        "",
        staying.test_where_something_is_or_was_a_moment_ago_nothing_stays,
        {"touched": "gone"},
    ),
    Defect(
        "what was deleted a moment ago hides what stays",
        "storage.memtable:Memtable.is_untouched",
        "(self._active_deletes, self.active)",
        "(False, self.active)",
        staying.test_where_something_is_or_was_a_moment_ago_nothing_stays,
        {"touched": "deleted"},
    ),
    Defect(
        "what was deleted before the checkpoint began hides what stays",
        "storage.memtable:Memtable.is_untouched",
        "(self._sealed_deletes, self.sealed)",
        "(False, self.sealed)",
        staying.test_where_something_is_or_was_a_moment_ago_nothing_stays,
        {"touched": "sealed"},
    ),
    Defect(
        "what stays is put over what is there",
        "storage.bundles.rewriting:leaving_of",
        "not _is_free(run.first, run.last, bundles, next_single)",
        "False",
        staying.test_where_something_is_or_was_a_moment_ago_nothing_stays,
        {"touched": "there"},
    ),
    Defect(
        "a record is looked for where another one was",
        "storage.bundles.seeking:Bundles.latest_around",
        "latest.first <= key <= latest.last",
        "latest.first <= key",
        bundles.test_each_record_is_found_in_its_own_bundle_whichever_was_wanted_before,
    ),
    Defect(
        "two names of a batch get the same keys",
        "storage.bundles.rewriting:leaving_of",
        "run.first <= behind",
        "False",
        staying.test_what_was_taken_under_the_same_keys_later_counts,
    ),
    Defect(
        "a start writes what stays once more",
        "storage.engine:JournaledStore._stays",
        "return all(map(self._base.leaves, runs))",
        "return False",
        staying.test_a_start_after_a_crash_finds_that_it_stays_already,
    ),
    Defect(
        "a start believes that all stays that ever did",
        "storage.engine:JournaledStore._stays",
        "return all(map(self._base.leaves, runs))",
        "return True",
        staying.test_on_a_full_disk_what_is_taken_waits_for_place,
    ),
    Defect(
        "little stays, too",
        "storage.engine:JournaledStore._stays",
        "size_bytes < STAYING_MIN_BYTES",
        "False",
        staying.test_little_does_not_stay,
    ),
    Defect(
        "a full disk refuses what is in the journal already",
        "storage.engine:JournaledStore._stays",
        "except StoreFull:",
        "except ZeroDivisionError:",
        staying.test_on_a_full_disk_what_is_taken_waits_for_place,
    ),
    Defect(
        "whatever is set aside is in memory",
        "storage.aside:Aside._remember",
        "self.notes[name].size_bytes <= KEPT_MAX_BYTES",
        "True",
        staying.test_what_is_long_is_not_kept_in_memory,
        {"is_long": True},
    ),
    Defect(
        "the base says what stays before the batch is in the journal",
        "storage.engine:JournaledStore.finish",
        "if is_durable:\n            self._write([prepared])\n        self._apply(prepared)",
        "self._apply(prepared)\n        if is_durable:\n            self._write([prepared])",
        aside.test_after_a_loss_of_power_anywhere_everything_goes_on,
        {"stride": 1, "least": 0},
    ),
    Defect(
        "a full disk keeps a range from being cleared",
        "storage.engine:JournaledStore._move_in_step",
        "if self._memtable.gone:",
        "self._base.gather()\n        if self._memtable.gone:",
        staying.test_a_full_disk_does_not_keep_anything_from_being_moved,
    ),
    Defect(
        "a start has to read whatever was taken since the journal turned",
        "storage.engine:JournaledStore._crowding",
        "self._taken_bytes / TAKEN_MAX_BYTES",
        "0.0",
        staying.test_what_is_taken_begins_another_checkpoint_before_a_start_has_much_to_read,
    ),
    Defect(
        "a compaction removes what may still be taken",
        "storage.maintenance:_compact",
        "if number not in aside",
        "if True",
        staying.test_compacting_takes_in_what_stays,
    ),
    Defect(
        "a compaction leaves what it has taken in",
        "storage.maintenance:_compact",
        "for path in left:",
        "for path in ():",
        staying.test_compacting_takes_in_what_stays,
    ),
    Defect(
        "what stays is not verified",
        "storage.bundles.stayed_files:StayedFiles.read",
        "checksum_of(data) != stay.checksum",
        "False",
        staying.test_damage_of_a_file_is_noticed,
        {"damage": "byte"},
    ),
    Defect(
        "a part of a name keeps the whole file",
        "storage.bundles.staying:run_of",
        "taken.first or not taken.count or taken.count !=",
        "taken.count >",
        staying.test_a_part_of_a_name_does_not_stay,
    ),
    Defect(
        "a refused batch leaves its files",
        "storage.aside:Aside.give_up",
        "self._files.remove(self._path(note))",
        "pass",
        aside.test_a_full_disk_refuses_what_is_set_aside_and_leaves_no_file,
    ),
    Defect(
        "a store with something aside looks like an older one",
        "storage.opening:_open",
        "description.version < SCHEMA_VERSION",
        "False",
        aside.test_a_store_of_version_2_is_read_and_becomes_a_new_one,
    ),
    Defect(
        "what is taken waits in memory until the journal is full",
        "storage.engine:JournaledStore._move_as_much",
        "self._move_slice(max(cost_bytes, SLICE_BYTES))",
        "pass",
        aside.test_a_batch_that_sets_aside_moves_as_many_into_the_base,
    ),
    Defect(
        "a start gives a file to others that the journal has in use",
        "storage.aside:Aside.keep",
        "self._last_file = max(self._last_file, note.file)",
        "pass",
        aside.test_a_start_gives_no_file_to_others_that_is_in_use,
    ),
    Defect(
        "a start gives a file to others that the base has in use",
        "storage.aside:Aside.__init__",
        "max(known, default=0)",
        "0",
        aside.test_a_start_gives_no_file_to_others_that_is_in_use,
    ),
    Defect(
        "a file that has grown is read as short as it was",
        "storage.aside:Aside.write",
        "max(size_bytes, needed_bytes)",
        "size_bytes or needed_bytes",
        aside.test_a_file_that_is_used_again_grows_and_stays_as_long_as_it_was,
    ),
    Defect(
        "a long file with little in it counts as short",
        "storage.aside:Aside.write",
        "max(size_bytes, needed_bytes)",
        "needed_bytes",
        aside.test_a_file_that_is_used_again_grows_and_stays_as_long_as_it_was,
    ),
    Defect(
        "what was dropped while a checkpoint ran is never free",
        "storage.aside:Aside.applied",
        "self._dropped.append((when, note))",
        "pass",
        aside.test_what_was_dropped_while_a_checkpoint_ran_is_free_after_the_next_one,
    ),
    Defect(
        "a file is free when a part of the checkpoint is done",
        "storage.engine:JournaledStore._move_slice",
        "memtable.moved(changes, place)",
        "memtable.moved(changes, place)\n    self._aside.applied(self._sealed_sequence or 0)",
        aside.test_a_file_waits_for_the_whole_checkpoint_that_has_what_was_taken,
    ),
    Defect(
        "a start keeps the values of a name that is dropped",
        "storage.aside:Aside.drop",
        "self._values.pop(name, None)",
        "pass",
        aside.test_a_name_that_is_used_again_has_its_own_values,
    ),
    Defect(
        "a start changes records before it takes them",
        "storage.engine:JournaledStore._replay_batch",
        "self._take(content.moves, record.sequence, is_replayed=True)\n"
        "    self._memtable.apply(content.changes)",
        "self._memtable.apply(content.changes)\n"
        "    self._take(content.moves, record.sequence, is_replayed=True)",
        aside.test_what_a_batch_changes_of_what_it_takes_is_changed_also_by_a_start,
    ),
    Defect(
        "a batch of which a part is refused leaves the other's file",
        "storage.engine:JournaledStore._set_aside",
        "self._give_up(notes)",
        "pass",
        aside.test_a_disk_that_becomes_full_between_two_files_keeps_neither,
    ),
    Defect(
        "a batch that the journal refuses leaves its files",
        "storage.engine:JournaledStore._reserve",
        "self._give_up(prepared.moves.aside)",
        "pass",
        aside.test_a_full_journal_takes_what_ends_a_transaction_and_not_what_sets_aside,
    ),
    Defect(
        "what sets aside uses what is kept for deletions",
        "storage.replication.prepared:Prepared.adds",
        "bool(batch.aside) or ",
        "",
        aside.test_a_full_journal_takes_what_ends_a_transaction_and_not_what_sets_aside,
    ),
    Defect(
        "what drops is no deletion",
        "storage.replication.prepared:Prepared.adds",
        " + len(batch.dropped)",
        "",
        aside.test_a_full_journal_takes_what_ends_a_transaction_and_not_what_sets_aside,
    ),
    Defect(
        "a file of the same batch is taken for the right one",
        "storage.aside:Aside.read",
        "written == name",
        "True",
        aside.test_files_of_one_batch_that_were_exchanged_are_noticed,
    ),
    Defect(
        "files of a store that has become new have the mark of the old one",
        "storage.engine:JournaledStore.reframe",
        "self._aside.framing = framing",
        "pass",
        recovery.test_an_old_store_is_read_and_becomes_a_new_one,
    ),
    Defect(
        "compacting forgets what is aside",
        "storage.maintenance:_copy",
        ", aside=source.aside",
        "",
        aside.test_compacting_keeps_what_is_set_aside,
    ),
    # Back-ups of a store in use.
    Defect(
        "pages are used again while they are copied",
        "storage.base:Base.hold",
        "self._held = self._env.begin()",
        "pass",
        snapshot.test_what_is_copied_stays_while_everything_is_written_over,
    ),
    Defect(
        "the journal is written over before it is copied",
        "storage.engine:JournaledStore._switch",
        "self._warn()",
        "pass",
        snapshot.test_what_is_copied_stays_while_everything_is_written_over,
    ),
    Defect(
        "a file of what is aside is used again before it is copied",
        "storage.aside:Aside.applied",
        "if self._is_held:",
        "if False:",
        snapshot.test_what_is_copied_stays_while_everything_is_written_over,
    ),
    Defect(
        "a file of what was dropped a moment ago is forgotten",
        "storage.aside:Aside._needed",
        "*(note for _, note in self._dropped)",
        "",
        snapshot.test_what_is_copied_stays_while_everything_is_written_over,
    ),
    Defect(
        "a back-up gets its name before it is synced",
        "storage.backups.writing:Draft._copy",
        "files.sync(file)\n    self._written",
        "self._written",
        writing.test_a_loss_of_power_leaves_a_whole_back_up_or_none,
        {"stride": 5, "keeps_names": True},
    ),
    Defect(
        "commits go on after a failed sync",
        "storage.engine:JournaledStore._refuse_commits",
        "self._failure =",
        "unused =",
        engine.test_after_a_failed_sync_no_commit_is_accepted_but_reading_goes_on,
    ),
]


def fixtures(defect: Defect, tmp_path: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what pytest would give a test."""
    if defect.test.__module__ == staying.__name__:
        staying.let_everything_stay(patch)
    made: dict[str, Callable[[], Any]] = {
        "tmp_path": lambda: tmp_path,
        "monkeypatch": lambda: patch,
        "request": lambda: Request(tmp_path),
        "fresh": lambda: Request(tmp_path).getfixturevalue("fresh"),
        "recycled": lambda: Request(tmp_path).getfixturevalue("recycled"),
        "directory": lambda: maintenance.make_store(tmp_path),
        "whole": lambda: whole_file(tmp_path),
        "base": lambda: Base(FileOps(), tmp_path / "records.mdb", create=True),
    }
    if hasattr(defect.test, "hypothesis"):
        return {}
    names = inspect.signature(defect.test).parameters
    return {name: make() for name, make in made.items() if name in names} | {**defect.arguments}


class Request:
    """What tests ask of pytest's fixture of this name."""

    def __init__(self, tmp_path: Path) -> None:
        self._tmp_path = tmp_path

    def getfixturevalue(self, name: str) -> Any:
        make = {"fresh": journal.make_fresh, "recycled": journal.make_recycled}[name]
        return make(self._tmp_path)


def whole_file(tmp_path: Path) -> bytes:
    damaged_pages.make(tmp_path / "whole.mdb")
    return (tmp_path / "whole.mdb").read_bytes()


@contextlib.contextmanager
def stopping_at_the_first_failure(test: Callable[..., Any]) -> Iterator[None]:
    """Let a property test fail without looking for its smallest example: nobody reads that here."""
    name = "_hypothesis_internal_use_settings"
    usual = getattr(test, name, None)
    if usual is None:
        yield
        return
    phases = (Phase.explicit, Phase.generate)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test, name, settings(usual, phases=phases, database=None))
        yield


@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.parametrize("defect", [pytest.param(defect, id=defect.name) for defect in DEFECTS])
def test_a_defect_is_noticed(defect: Defect, tmp_path: Path) -> None:
    mutant = Mutant(defect.name, defect.where, defect.old, defect.new)
    (tmp_path / "sound").mkdir()
    (tmp_path / "broken").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        defect.test(**fixtures(defect, tmp_path / "sound", patch))
    with (
        pytest.MonkeyPatch.context() as patch,
        applied(mutant),
        stopping_at_the_first_failure(defect.test),
        pytest.raises(BaseException) as noticed,  # noqa: PT011
    ):
        defect.test(**fixtures(defect, tmp_path / "broken", patch))
    assert not isinstance(noticed.value, KeyboardInterrupt | TypeError | NameError)


def test_each_defect_has_its_own_name() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS)
