"""The pipeline `report`: one page that shows deliveries, whatever the messages say."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from openmsmq.cli.connecting import Target
from openmsmq.cli.pipeline import delivery as delivery_command
from openmsmq.cli.pipeline import report as report_command
from openmsmq.spark.pipelines.delivery import delivery
from openmsmq.spark.pipelines.delivery.outcomes import Outcome
from openmsmq.spark.pipelines.report import report
from openmsmq.spark.pipelines.report.data import (
    EDGES_S,
    STEPS_MAX_COUNT,
    Example,
    Failure,
    Group,
    Latencies,
    LinkLoad,
    ReportData,
    Step,
    Throughput,
    Totals,
    step_for,
    time_range,
)
from openmsmq.spark.pipelines.report.figures import link_figure
from openmsmq.spark.pipelines.report.map import (
    ARROWS_MAX_COUNT,
    NODES_MAX_COUNT,
    arrange,
    shown_links,
)
from openmsmq.spark.pipelines.report.page import page
from openmsmq.spark.pipelines.report.tables import example_table, queue_table
from openmsmq.spark.pipelines.report.text import duration_text, range_text, share_text
from tests.spark.delivery_by_hand import expected
from tests.spark.delivery_rows import IDENTITIES, START_S, Row, draw_rows, row, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOSTILE = "</td></style><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'\x1b[31m\u202e"
PLAIN_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "dl"),
    *("div", "dt", "dd", "small", "figure", "figcaption", "table", "thead", "tbody", "tr", "th"),
    *("td", "span", "i", "details", "summary", "footer"),
}
SVG_TAGS = {"svg", "defs", "g", "path", "text", "tspan", "use", "clippath", "rect", "style"}


class Looker(HTMLParser):
    """Reads a page as a browser does: tags, attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def assert_harmless(text: str) -> Looker:
    """See that a page runs nothing and fetches nothing."""
    found = Looker(text)
    assert found.tags <= PLAIN_TAGS | SVG_TAGS
    for name, value in found.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "href", "action", "data")
        if name == "xlink:href":
            assert value.startswith("#")
        elif not name.startswith("xmlns"):
            assert "://" not in value
        for address in re.findall(r"url\(([^)]*)\)", value):
            assert address.startswith("#")
    for style in re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL):
        assert "url(" not in style
        assert "@import" not in style
    shown = "".join(found.texts)
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    return found


def example(**values: Any) -> Example:
    fields: dict[str, Any] = {
        "message_id": "{a}\\1",
        "label": "label",
        "outcome": "dead_letter",
        "reason": "NACK_QUEUE_PURGED",
        "queue": "BETA\\private$\\orders",
        "sent": None,
        "path": ("ALPHA", "BETA"),
        "reach_s": None,
        "receive_s": 5.0,
    }
    return Example(**{**fields, **values})


def group(name: str) -> Group:
    return Group(name, 10, 6, 3, 2048, (1.0, 2.0, 3.0), (), {"NACK_QUEUE_PURGED": 3})


def data(name: str = "ALPHA") -> ReportData:
    """Give a little of everything, with a name that came from a message."""
    start = datetime.fromtimestamp(START_S, UTC)
    outcomes = {one.value: 1 for one in Outcome}
    return ReportData(
        totals=Totals(
            8, 3, outcomes, 1, 2048, 0.375, (1.0, 4.0, 22.0), (), start, start + timedelta(hours=1)
        ),
        throughput=Throughput(60, (Step(start, 3, 2, 3),), 2),
        latencies=Latencies(tuple(range(len(EDGES_S) + 1))),
        failures=tuple(Failure(f"{name} {number}", 1, number) for number in range(20)),
        links=(
            LinkLoad(name, "BETA", 9, 7, 2, (1.0, 4.0, 9.0)),
            LinkLoad("BETA", name, 1, 1, 0, ()),
        ),
        queues=(group(name),),
        hours=(group("2023-11-14 22:00"),),
        slowest=(example(label=name, queue=name, path=(name, name), message_id=name),),
        undelivered=(example(reason=name),),
        queue_count=7,
        link_count=2,
        hour_count=1,
    )


# The page.


@pytest.mark.parametrize("name", [HOSTILE, "private$\\a$b$", "\u6ce8\u6587 \U0001f4e8", ""])
def test_a_page_shows_whatever_messages_say_and_does_nothing(name: str) -> None:
    found = assert_harmless(page(data(name), name))
    assert {"svg", "table", "figure"} <= found.tags
    shown = "".join(found.texts)
    assert (HOSTILE[:40] if name == HOSTILE else name) in shown
    assert "2 messages with times far from the others" in shown
    assert "The 1 busiest queues of 7." in shown


pieces = st.sampled_from(["<script>", "</td>", "<img src=x onerror=y>", "&lt;", '"', "'", "\0"])
texts = st.lists(pieces | st.text(max_size=9), max_size=9).map("".join)


@given(texts)
def test_tables_are_harmless_with_any_text(text: str) -> None:
    shown = example_table("Slowest", [example(label=text, queue=text, path=(text,), reason=text)])
    assert_harmless(shown + queue_table(ReportData(queues=(group(text),))))


def test_a_page_about_nothing_says_so() -> None:
    found = assert_harmless(page(ReportData(), "Nothing"))
    assert "There are no messages in the input" in "".join(found.texts)


def test_identifiers_in_a_page_are_there_once() -> None:
    identifiers = [value for name, value in Looker(page(data(), "")).attributes if name == "id"]
    assert identifiers
    assert len(set(identifiers)) == len(identifiers)


# What is drawn.


def test_names_are_drawn_as_they_are() -> None:
    name = r"ALPHA$\a$ <b>"
    drawn = link_figure([LinkLoad(name, "BETA", 9, 7, 2, (1.0, 4.0, 9.0))])
    assert name in Looker(drawn).texts


@given(st.integers(0, 2**32))
def test_bars_of_throughput_are_not_too_many(span_s: int) -> None:
    step_s = step_for(span_s)
    # The first bar may begin before the first message.
    assert (span_s + step_s - 1) // step_s + 1 <= STEPS_MAX_COUNT


def test_a_wrong_clock_does_not_stretch_the_plot() -> None:
    assert time_range(0, 1000, 10, 990) == (0, 1000)
    assert time_range(0, START_S, START_S - 900, START_S) == (START_S - 900, START_S)


links = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 1000)).filter(
        lambda link: link[0] != link[1]
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda link: link[:2],
).map(lambda found: [LinkLoad(f"QM{a}", f"QM{b}", count, 0, 0, ()) for a, b, count in found])


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


# With Spark.


APP = typer.Typer()
APP.command("delivery")(delivery_command.delivery)
APP.command("report")(report_command.report)


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    @contextlib.contextmanager
    def shared(*_: object) -> Iterator[SparkSession]:
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
    result = run("report", "--input", folder, "--output", target, "--title", "Friday")
    assert result.exit_code == 0, result.output
    shown = "".join(assert_harmless(Path(target).read_text(encoding="utf-8")).texts)
    assert f"of {len(wanted)} messages reached their queue" in shown
    assert HOSTILE[:40] in shown
    assert "Friday" in shown


def test_nothing_in_gives_a_page_that_says_so(
    spark: SparkSession, run: Callable[..., Result], tmp_path: Path
) -> None:
    shown = report(delivery(spark.createDataFrame(table([]))))
    assert "There are no messages in the input" in shown
    result = run("report", "--input", str(tmp_path), "--output", str(tmp_path / "page.html"))
    assert isinstance(result.exception, Exception)
    assert "is no table of Parquet files, which openmsmq pipeline delivery" in str(result.exception)


@pytest.mark.parametrize(
    ("output", "sentence"),
    [("", "is a directory: name the file"), ("missing/page.html", "there is no directory")],
)
def test_a_page_that_has_no_place_is_refused(tmp_path: Path, output: str, sentence: str) -> None:
    arguments = ["report", "--input=x", f"--output={tmp_path / output}"]
    result = CliRunner().invoke(APP, arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
