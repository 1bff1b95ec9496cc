"""The style sheet of the report: one column on a phone, light or dark as the reader has it."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --surface: #ffffff; --ink: #1b2430; --muted: #5d6b7c; --line: #dfe4ea;
  --good: #2f8f6b; --open: #c9a227; --bad: #c8413b; --accent: #3b6fb6; --accent-2: #8fb4dd;
  --speed-1: #2f8f6b; --speed-2: #7fb069; --speed-3: #d9a62e;
  --speed-4: #dd7230; --speed-5: #b3262b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161c; --surface: #1a2029; --ink: #e6ebf1; --muted: #93a1b1; --line: #2d3642;
    --good: #4cb58c; --open: #d9b84a; --bad: #e56b64; --accent: #6fa0e0; --accent-2: #36557f;
    --speed-1: #4cb58c; --speed-2: #95c67c; --speed-3: #e3b84c;
    --speed-4: #ea8a50; --speed-5: #ee5a5f;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  -webkit-text-size-adjust: 100%;
}
main { max-width: 1180px; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 {
  font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em;
  overflow-wrap: anywhere;
}
h2 { font-size: 1.15rem; margin: 2.6rem 0 .8rem; }
h3 { font-size: 1rem; margin: 0 0 .15rem; }
p { margin: .3rem 0 .8rem; }
.lead { font-size: 1.08rem; max-width: 62ch; }
.note, .when, figcaption, dt { color: var(--muted); }
.note, figcaption { font-size: .86rem; }
.cards {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: .8rem;
  margin: .9rem 0 0; padding: 0;
}
.cards div, figure, .table {
  background: var(--surface); border: 1px solid var(--line); border-radius: 10px;
}
.cards div { padding: .8rem 1rem; border-top: 3px solid var(--line); }
.cards .good { border-top-color: var(--good); }
.cards .open { border-top-color: var(--open); }
.cards .bad { border-top-color: var(--bad); }
.cards .accent { border-top-color: var(--accent); }
dt { font-size: .82rem; }
dd {
  margin: 0; font-size: 1.3rem; font-weight: 650; font-variant-numeric: tabular-nums;
  line-height: 1.3; white-space: nowrap;
}
dd small { display: block; font-size: .82rem; font-weight: 400; color: var(--muted); }
.figures {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr));
  gap: 1rem; align-items: start;
}
figure { margin: 0; padding: 1rem 1rem .8rem; min-width: 0; }
figure svg { display: block; width: 100%; height: auto; margin: .4rem 0; }
figure svg text { font-family: inherit !important; }
.table { overflow-x: auto; -webkit-overflow-scrolling: touch; }
table {
  border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums;
}
th, td {
  padding: .45rem .7rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); white-space: nowrap;
}
th { color: var(--muted); font-weight: 600; font-size: .8rem; }
tbody tr:last-child td { border-bottom: 0; }
.number { text-align: right; }
.why { white-space: normal; min-width: 11rem; }
.name { white-space: normal; overflow-wrap: anywhere; min-width: 15rem; }
.code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .8rem; }
.bar {
  display: flex; width: 7rem; height: .55rem; border-radius: 3px; overflow: hidden;
  background: var(--line); margin-top: .42rem;
}
.bar i { display: block; height: 100%; }
.bar .good { background: var(--good); }
.bar .open { background: var(--open); }
.bar .bad { background: var(--bad); }
.tag {
  display: inline-block; padding: 0 .5em; border-radius: 999px; border: 1px solid currentColor;
  font-size: .78rem;
}
.tag.good { color: var(--good); }
.tag.open { color: var(--open); }
.tag.bad { color: var(--bad); }
details { margin-top: 2.4rem; }
summary { cursor: pointer; font-weight: 600; }
footer { margin-top: 2.5rem; font-size: .84rem; color: var(--muted); }
@media print {
  body { background: #fff; }
  .table { overflow: visible; }
  figure, .table { break-inside: avoid; }
}
"""
