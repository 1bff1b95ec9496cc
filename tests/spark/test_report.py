"""The pipeline `report`: one page that shows deliveries, whatever the messages say."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from openmsmq.cli.options.connecting import Target
from openmsmq.cli.pipeline import delivery as delivery_command
from openmsmq.cli.pipeline import report as report_command
from openmsmq.client.operating.reasons import UNKNOWN
from openmsmq.model.message import MessageClass, is_negative
from openmsmq.spark.pipelines.delivery import delivery
from openmsmq.spark.pipelines.delivery.outcomes import Outcome
from openmsmq.spark.pipelines.delivery.tables import Manager, read_events, write_results
from openmsmq.spark.pipelines.few import for_few_rows, local
from openmsmq.spark.pipelines.report import Event, report
from openmsmq.spark.pipelines.report.advice import advices
from openmsmq.spark.pipelines.report.collecting import collect
from openmsmq.spark.pipelines.report.data import (
    STEPS_MAX_COUNT,
    Axis,
    Counts,
    Fate,
    LinkLoad,
    ReportData,
    Times,
    step_for,
    time_range,
)
from openmsmq.spark.pipelines.report.figures import course_figure
from openmsmq.spark.pipelines.report.gaps import find_gaps
from openmsmq.spark.pipelines.report.map import (
    ARROWS_MAX_COUNT,
    NODES_MAX_COUNT,
    arrange,
    draw_links,
    shown_links,
)
from openmsmq.spark.pipelines.report.page import View, page
from openmsmq.spark.pipelines.report.text import (
    change_text,
    duration_text,
    range_text,
    share_text,
)
from tests.spark.delivery_by_hand import expected
from tests.spark.delivery_rows import IDENTITIES, START_S, Row, draw_rows, row, table
from tests.spark.report_example import a_day
from tests.spark.report_texts import HOSTILE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEMPLATES = Path(report_command.__file__).parents[2] / "spark/pipelines/report/templates"
PLAIN_TAGS = {
    *("html", "head", "meta", "title", "style", "script", "body", "main", "h1", "h2", "h3", "p"),
    *("dl", "div", "dt", "dd", "small", "figure", "figcaption", "table", "thead", "tbody", "tr"),
    *("tfoot", "th", "td", "span", "b", "br", "details", "summary", "footer", "article", "ul"),
    *("ol", "li", "pre", "code", "section", "a", "form", "label", "select", "option", "button"),
    "output",
}
SVG_TAGS = {"svg", "g", "path", "polygon", "text", "line", "rect"}


class Looker(HTMLParser):
    """Reads a page as a browser does: tags, attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open = tag
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert tag in PLAIN_TAGS | SVG_TAGS
        self._open = ""

    def handle_data(self, data: str) -> None:
        parts = {"script": self.scripts, "style": self.styles}.get(self._open, self.texts)
        parts.append(data)

    @property
    def shown(self) -> str:
        return " ".join("".join(self.texts).split())


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def assert_harmless(text: str) -> Looker:
    """See that a page runs nothing but its own script, and fetches nothing."""
    found = Looker(text)
    assert set(found.tags) <= PLAIN_TAGS | SVG_TAGS
    for name, value in found.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "action", "data", "style", "srcdoc", "xlink:href")
        if name == "href":
            assert value.startswith("#")
        assert "://" not in value
        assert "url(" not in value
    assert found.tags.count("script") == found.tags.count("style") == 1
    ((style,), (script,)) = found.styles, found.scripts
    assert script == (TEMPLATES / "script.js").read_text(encoding="utf-8")
    assert "url(" not in style
    assert "@import" not in style
    policy = _policy(found)
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; "
        f"script-src 'sha256-{digest(script)}'; base-uri 'none'; form-action 'none'"
    )
    shown = "".join(found.texts)
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    return found


def _policy(found: Looker) -> str:
    return next(value for name, value in found.attributes if value.startswith("default-src"))


# The page.


@pytest.mark.parametrize(
    "name", [HOSTILE, "private$\\a$b$", "\u6ce8\u6587 \U0001f4e8", "{{ 7 * 7 }}"]
)
def test_a_page_shows_whatever_messages_say_and_does_nothing(name: str) -> None:
    found = assert_harmless(page(a_day(name), name))
    assert {"svg", "table", "figure"} <= set(found.tags)
    start = name[:20]
    assert found.shown.count(start) > 20
    assert "4 messages with times far from the others" in found.shown
    assert "The 5 busiest queues of 61." in found.shown


pieces = st.sampled_from(
    ["<script>", "</td>", "</title>", "<img src=x onerror=y>", "&lt;", '"', "'", "\0", "{% raw %}"]
)
texts = st.lists(pieces | st.text(max_size=9), max_size=9).map("".join)


@settings(max_examples=20)
@given(texts)
def test_a_page_is_harmless_with_any_text(text: str) -> None:
    assert_harmless(page(a_day(text), text))


def test_templates_take_no_text_as_it_is() -> None:
    for path in TEMPLATES.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "safe" not in re.findall(r"\|\s*(\w+)", text), path.name
        assert "autoescape" not in text, path.name


def test_a_page_about_nothing_says_so() -> None:
    found = assert_harmless(page(ReportData(), "Nothing"))
    assert "There are no messages in the input" in found.shown


def test_identifiers_in_a_page_are_there_once_and_every_link_leads_somewhere() -> None:
    attributes = Looker(page(a_day(), "")).attributes
    identifiers = [value for name, value in attributes if name == "id"]
    assert len(set(identifiers)) == len(identifiers)
    targets = {value.removeprefix("#") for name, value in attributes if name == "href"}
    assert targets <= set(identifiers)
    assert any(target.startswith("link-") for target in targets)


def test_a_page_stays_small() -> None:
    assert len(page(a_day("W" * 150), "")) < 1_000_000


# What needs somebody.


def test_what_is_lost_or_unexplained_comes_first_and_every_kind_says_what_to_do() -> None:
    data = a_day()
    found = advices(data)
    assert [one.count for one in found] == [7, 31, 12, 60, 36, 3]
    assert [one.title for one in found[:2]] == ["lost", "left no trace"]
    assert all(one.meaning and one.steps for one in found)
    shown = Looker(page(data, "")).shown
    order = [shown.index(f"{one.count} {one.title}") for one in found]
    assert order == sorted(order)
    assert order[-1] < shown.index("Over time deliveredopen")


def test_every_reason_for_which_a_message_fails_has_its_own_advice() -> None:
    reasons = [one.name for one in MessageClass if is_negative(one)]
    data = ReportData(fates=tuple(Fate("dead_letter", name, 1) for name in reasons))
    texts = {(one.meaning, one.steps[0]) for one in advices(data)}
    assert len(texts) == len(reasons)
    assert not any(step == UNKNOWN.advice for _, step in texts)


def test_who_did_not_ask_is_counted_and_told_how() -> None:
    outcomes = {one.value: 0 for one in Outcome} | {"unknown": 4, "in_transit": 2}
    found = advices(ReportData(totals=Counts(6, 0, outcomes, untraced_count=5)))
    assert [(one.count, one.title) for one in found] == [
        (4, "left no trace"),
        (1, "on their way, and will leave no trace"),
    ]
    for one in found:
        assert "--ack full-receive --admin-queue" in one.commands[0]


def test_percentiles_are_never_without_the_number_that_they_rest_on() -> None:
    text = page(a_day(), "")
    found = re.findall(r'<span class="times">(.*?)</span></span>', text)
    assert len(found) > 60
    assert all(re.search(r"n = [1-9][\d,]*$", one) for one in found)
    outside = re.sub(r'<span class="times">.*?</span></span>', "", text)
    assert not re.search(r"p(50|95|99)</small>", outside)
    # Of seven messages the 95th percentile is but the longest time.
    assert View.few(95, 7)
    assert not View.few(50, 7)
    assert not View.few(95, 20)
    assert View.few(99, 99)


# Over time.

AXIS = Axis(datetime.fromtimestamp(START_S, UTC), 1, 60)


def steady(*, but: range = range(0)) -> dict[tuple[int, int], int]:
    """Return a message each second; those that left while the link was down came after it."""
    crossings: dict[tuple[int, int], int] = defaultdict(int)
    for left in range(60):
        crossings[left, but.stop if left in but else left] += 1
    return crossings


def test_a_gap_is_a_time_without_arrivals_in_which_messages_waited() -> None:
    down = range(20, 26)
    crossings = {("A", "HUB"): steady(but=down), ("B", "HUB"): steady(but=down)}
    crossings["HUB", "HQ"] = steady()
    (gap,) = find_gaps(AXIS, crossings)
    assert (gap.sources, gap.target, gap.waited_count) == (("A", "B"), "HUB", 12)
    assert (gap.start - AXIS.start).total_seconds() == 20
    assert (gap.end - gap.start).total_seconds() == 6


def test_a_time_without_work_is_no_gap() -> None:
    crossings = {key: 1 for key in steady() if key[0] not in range(20, 40)}
    assert find_gaps(AXIS, {("A", "B"): crossings}) == ()


def test_gaps_and_events_are_numbered_by_time_and_their_marks_are_apart() -> None:
    data = a_day()
    assert data.course is not None
    events = [
        *data.events,
        *(Event(data.events[0].time + timedelta(seconds=n), f"event {n}") for n in range(5)),
    ]
    figure = course_figure(data.course, events)
    assert [mark.number for mark in figure.marks] == list(range(1, 10))
    assert [mark.x for mark in figure.marks] == sorted(mark.x for mark in figure.marks)
    for one, other in combinations(figure.marks, 2):
        assert one.y != other.y or abs(one.x - other.x) >= 7


@given(st.integers(0, 2**32))
def test_bars_over_time_are_not_too_many(span_s: int) -> None:
    step_s = step_for(span_s)
    # The first bar may begin before the first message.
    assert (span_s + step_s - 1) // step_s + 1 <= STEPS_MAX_COUNT


def test_a_wrong_clock_does_not_stretch_the_plot() -> None:
    assert time_range(0, 1000, 10, 990) == (0, 1000)
    assert time_range(0, START_S, START_S - 900, START_S) == (START_S - 900, START_S)


# The map.

links = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 1000)).filter(
        lambda link: link[0] != link[1]
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda link: link[:2],
).map(
    lambda found: [
        LinkLoad(f"QM{a}{'-' * (a % 9)}", f"QM{b}{'-' * (b % 9)}", count, 0, 0, count, Times())
        for a, b, count in found
    ]
)


@given(links)
def test_a_map_has_the_busiest_links_and_each_queue_manager_once(found: list[LinkLoad]) -> None:
    shown = shown_links(found)
    names = arrange(shown)
    assert len(shown) <= ARROWS_MAX_COUNT
    assert len(names) <= NODES_MAX_COUNT
    assert sorted(names) == sorted({name for link in shown for name in (link.source, link.target)})
    assert shown[0].message_count == max(
        link.message_count for link in found if link.source in names and link.target in names
    )


@settings(max_examples=50)
@given(links)
def test_no_text_of_a_map_lies_on_another_or_outside(found: list[LinkLoad]) -> None:
    drawn = draw_links(found)
    boxes = [*drawn.nodes, *(arrow.count for arrow in drawn.arrows if arrow.count is not None)]
    for one, other in combinations(boxes, 2):
        apart_x = abs(one.x - other.x) >= (one.width + other.width) / 2
        apart_y = abs(one.y - other.y) >= (one.height + other.height) / 2
        assert apart_x or apart_y, (one, other)
    for one in drawn.nodes:
        assert one.width / 2 <= one.x <= drawn.width - one.width / 2
        assert one.height / 2 <= one.y <= drawn.height - one.height / 2


# Texts.


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_a_share_is_nothing_or_everything_only_if_it_is(part: int, whole: int) -> None:
    part = min(part, whole)
    text = share_text(part, whole)
    assert (text == "0 %") == (part == 0)
    assert (text == "100 %") == (part == whole)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.5, "0.5 s"),
        (59.6, "1 min"),
        (3601, "1 h"),
        (90_061, "1 d 1 h"),
        (-3, "\N{MINUS SIGN}3 s"),
    ],
)
def test_a_duration_is_said_by_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_ranges_are_said_in_the_unit_that_fits() -> None:
    names = [range_text(*ends) for ends in ((1, 2), (3, 5), (30, 60), (60, 120), (1800, 3600))]
    assert names == [
        text.replace("-", "\N{EN DASH}")
        for text in ("1 s", "3-4 s", "30-59 s", "1-2 min", "30-60 min")
    ]
    assert range_text(604_800, None) == "≥ 7 d"


def test_a_change_is_said_as_a_share_or_as_a_count_if_there_were_few() -> None:
    minus = "\N{MINUS SIGN}"
    found = [
        change_text(*pair) for pair in ((5, 5), (110, 100), (90, 100), (7, 3), (10_001, 10_000))
    ]
    assert found == ["as before", "+10 %", f"{minus}10 %", "+4", "+1"]


# With Spark.


APP = typer.Typer()
APP.command("delivery")(delivery_command.delivery)
APP.command("report")(report_command.report)


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    @contextlib.contextmanager
    def shared(*_: object, **__: object) -> Iterator[SparkSession]:
        # The commands would stop the session, which is that of all tests here.
        yield spark

    for command in (delivery_command, report_command):
        monkeypatch.setattr(command, "spark_session", shared)
    return lambda *options: CliRunner().invoke(APP, options, obj=Target("127.0.0.1"))


def ingested(folder: Path, rows: list[Row]) -> str:
    """Write a table as ingest does: a directory for each queue."""
    pq.write_to_dataset(table(rows), folder / "messages", partition_cols=["queue"])
    return str(folder / "messages")


@pytest.mark.timeout(300)
def test_commands_turn_an_ingested_table_into_a_page(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    rows = draw_rows(3, 60)
    rows.append(
        row(
            "GAMMA",
            # A directory with such a name looks like a number.
            "0123",
            START_S + 40_000,
            message_id=f"{{{IDENTITIES['ALPHA']}}}\\77777",
            source_qm=IDENTITIES["ALPHA"],
            destination="DIRECT=OS:gamma\\0123",
            label=HOSTILE,
            sent_s=START_S,
        )
    )
    wanted = expected(rows)
    folder, target = str(tmp_path / "out"), str(tmp_path / "report.html")
    result = run(
        *("delivery", "--input", ingested(tmp_path, rows), "--browsed"),
        "--output",
        folder,
        "--json",
    )
    assert result.exit_code == 0, result.output
    total, *queues = [json.loads(line) for line in result.stdout.splitlines()]
    assert total["message_count"] == len(wanted)
    for one in Outcome:
        count = sum(row["outcome"] == one.value for row in wanted.values())
        assert total[f"{one.value}_count"] == count
    assert sum(each["message_count"] for each in queues) == len(wanted)
    assert "0123" in [each["destination_queue"] for each in queues]
    result = run(
        *("report", "--input", folder, "--output", target, "--title", "Friday"),
        *("--before", folder, "--event", "2023-11-15T01:00:00Z BETA was killed"),
    )
    assert result.exit_code == 0, result.output
    shown = assert_harmless(Path(target).read_text(encoding="utf-8")).shown
    assert f"of {len(wanted)} messages were delivered" in shown
    assert HOSTILE[:40] in shown
    assert "Friday" in shown
    assert f"before: {len(wanted)} (as before)" in shown
    assert "01:00 BETA was killed" in shown
    result = run("report", "--input", folder, "--output", target, "--day", "2023-11-15")
    assert result.exit_code == 0, result.output
    shown = assert_harmless(Path(target).read_text(encoding="utf-8")).shown
    days = Counter(one["sent_time"] and one["sent_time"].date() for one in wanted.values())
    today, yesterday = days[date(2023, 11, 15)], days[date(2023, 11, 14)]
    assert f"of {today} messages were delivered" in shown
    assert f"before: {yesterday} (" in shown
    assert "Compared with 2023-11-14." in shown


@pytest.mark.timeout(300)
def test_all_numbers_of_the_page_agree_with_each_other_and_with_the_rows(
    spark: SparkSession,
) -> None:
    rows = draw_rows(5, 200)
    wanted = list(expected(rows).values())
    found = delivery(spark.createDataFrame(table(rows)))
    data = collect(found, before=("before", found))
    # Few rows are counted here, and many in tasks.
    few = local(found)
    assert collect(few, before=("before", few)) == data
    totals, course = data.totals, data.course
    assert course is not None
    assert totals.message_count == len(wanted)
    assert totals.arrived_count == sum(one["arrived"] for one in wanted)
    parts = (totals.delivered_count, totals.undelivered_count, totals.open_count)
    assert sum(parts) == totals.message_count
    assert totals.arrived_count == totals.delivered_count + totals.failed_after_arrival_count
    drawn = tuple(sum(each) for each in (course.delivered, course.undelivered, course.open))
    untimed = sum(one["sent_time"] is None for one in wanted)
    assert (course.untimed_count, course.outside_count) == (untimed, 0)
    assert sum(drawn) + untimed == totals.message_count
    assert sum(course.arrived) <= totals.arrived_count
    for counts, what in ((data.latencies.reach, "reach"), (data.latencies.receive, "receive")):
        known = sum(one[f"latency_{what}_s"] is not None for one in wanted)
        assert sum(counts) == getattr(totals, what).count == known
    assert sum(fate.message_count for fate in data.fates) == totals.message_count
    assert Counter(one["outcome"] for one in wanted) == {
        name: count for name, count in totals.outcomes.items() if count
    }
    ledger = sum(row.message_count for row in data.ledger)
    assert ledger + View(data).unlisted_count == totals.message_count
    assert View(data).unlisted_count == 0
    assert sum(queue.counts.message_count for queue in data.queues) == totals.message_count
    assert sum(hour.counts.message_count for hour in data.hours) == len(wanted) - untimed
    for link in data.links:
        on_it = link.arrived_count + link.undelivered_count + link.open_count
        assert on_it == link.message_count
    advised = sum(one.count for one in advices(data) if one.title != "in doubt")
    assert advised == totals.undelivered_count + totals.outcomes["unknown"] + (
        totals.untraced_count - totals.outcomes["unknown"]
    )
    # One by one, they are those of the rows.
    by_id = {one["message_id"]: one for one in wanted}
    for one in (*data.examples, *data.slowest):
        found = by_id[one.message_id]
        assert (one.outcome, one.label) == (found["outcome"], found["label"])
        assert [hop.queue_manager for hop in one.path] == [name for name, _ in found["path"]]
    longest = max(max(one["latency_reach_s"] or 0, one["latency_receive_s"] or 0) for one in wanted)
    assert max(data.slowest[0].reach_s or 0, data.slowest[0].receive_s or 0) == longest


def test_starts_of_queue_managers_are_kept_with_the_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    started = datetime.fromtimestamp(START_S, UTC)
    rows = spark.createDataFrame(table(draw_rows(3, 5)))
    folder = str(tmp_path / "out")
    manager = Manager(IDENTITIES["ALPHA"], "ALPHA", started)
    with for_few_rows(spark):
        write_results(spark, rows.coalesce(1), folder, managers=[manager])
    assert read_events(spark, folder) == [(started, "ALPHA started")]
    assert read_events(spark, str(tmp_path)) == []


def test_nothing_in_gives_a_page_that_says_so(
    spark: SparkSession, run: Callable[..., Result], tmp_path: Path
) -> None:
    shown = report(delivery(spark.createDataFrame(table([]))))
    assert "There are no messages in the input" in shown
    result = run("report", "--input", str(tmp_path), "--output", str(tmp_path / "page.html"))
    assert isinstance(result.exception, Exception)
    assert "is no table of Parquet files, which openmsmq pipeline delivery" in str(result.exception)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--day", "yesterday"), "--day yesterday: write a day as in 2026-03-02."),
        (("--event", "HUB was killed"), "--event HUB was killed: write a time and what happened"),
        (("--day", "2026-03-02", "--before", "x"), "give one of them"),
    ],
)
def test_options_of_a_page_that_make_no_sense_are_refused(
    tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    arguments = ["report", "--input=x", f"--output={tmp_path / 'page.html'}", *options]
    result = CliRunner().invoke(APP, arguments)
    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("output", "sentence"),
    [("", "is a directory: name the file"), ("missing/page.html", "there is no directory")],
)
def test_a_page_that_has_no_place_is_refused(tmp_path: Path, output: str, sentence: str) -> None:
    arguments = ["report", "--input=x", f"--output={tmp_path / output}"]
    result = CliRunner().invoke(APP, arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
