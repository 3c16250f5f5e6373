"""Measurements as one self-contained HTML page: plots drawn here, as SVG, and the table; nothing is run or fetched."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import Any

from syncscope.bench.comparison import PASSES, compared, ms, named, share
from syncscope.bench.results import Case, Results, speed

WIDTH, HEIGHT = 460, 280  # of a plot
LEFT, BOTTOM, TOP, RIGHT = 52, 36, 14, 92  # around its axes: numbers, batch sizes, names of devices
ROW, LABEL, BAR = 20, 210, 420  # of the bars: height of one, width of its name, width at 100 %
STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --faint: #6f6f6f; --line: #dcdcdc; --paper: #fff;
  --c0: #2563eb; --c1: #b45309; --c2: #047857; --c3: #9333ea; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --faint: #9a9a9a; --line: #3a3a3a; --paper: #161616;
  --c0: #7aa5ff; --c1: #f2b04c; --c2: #4ecb9c; --c3: #c99bff; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; } figcaption { font-weight: 600; }
svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 12px; }
svg .faint { fill: var(--faint); } svg .grid { stroke: var(--line); } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child, td:last-child { text-align: left; }
"""


def page(found: Results, before: Results | None = None) -> str:
    """The whole file."""
    comparison = compared(found, before)
    plots = "".join(_lines(*plot) for plot in _by_network(found))
    bars = _bars(found)
    heads = "".join(f'<th scope="col">{_text(head)}</th>' for head in comparison.heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>\n" for cells in comparison.table
    )
    parts = [
        f"<h1>{_text(comparison.title)}</h1>",
        f"<p>{_text(comparison.verdict)}</p>" if comparison.verdict else "",
        bars,
        f'<h2>By batch size</h2><div class="plots">{plots}</div>' if plots else "",
        f'<h2>All rows</h2><div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>\n{body}</tbody></table></div>',
        "<ul>" + "".join(f"<li>{_text(line)}</li>" for line in [*comparison.devices, *comparison.notes]) + "</ul>",
        "<p>Medians of iterations that were each waited for; the bars of a plot are the quartiles; `-` is out of memory.</p>",
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{_text(comparison.title)}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(filter(None, parts)) + "\n</body></html>\n"
    )


def _by_network(found: Results) -> Iterable[tuple[str, dict[str, list[dict[str, Any]]], list[str]]]:
    """A plot for everything that was measured at several batch sizes: its name, and the rows of each device."""
    groups: dict[Case, dict[str, list[dict[str, Any]]]] = {}
    for case, rows in found.cases():
        for device, row in rows.items():
            if row.get("ms"):
                groups.setdefault(case._replace(batch=0), {}).setdefault(device, []).append(row)
    for case, devices in groups.items():
        if len({row["batch"] for rows in devices.values() for row in rows}) > 1:
            what = f"{case.network}, {PASSES.get(case.which, case.which)}, {case.dtype}"
            yield what, devices, named(found)


def _lines(what: str, devices: dict[str, list[dict[str, Any]]], order: list[str]) -> str:
    """Milliseconds by batch size, both logarithmic: a line for each device, a bar from quartile to quartile."""
    rows = [row for device in devices.values() for row in device]
    batches = sorted({row["batch"] for row in rows})
    low, high = min(row.get("low") or row["ms"] for row in rows), max(row.get("high") or row["ms"] for row in rows)
    ticks = _ticks(low, high)
    bottom, top = math.log(min(low, ticks[0])), math.log(max(high, ticks[-1]))
    first, last = math.log(batches[0]), math.log(batches[-1])

    def x(batch: float) -> float:
        return LEFT + (math.log(batch) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log(value) - bottom) / ((top - bottom) or 1) * (HEIGHT - BOTTOM - TOP)

    drawn = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(t):.1f}" y2="{y(t):.1f}"/>'
        f'<text class="faint" x="{LEFT - 6}" y="{y(t) + 4:.1f}" text-anchor="end">{t:g}</text>'
        for t in ticks
    ]
    drawn += [f'<text class="faint" x="{x(b):.1f}" y="{HEIGHT - 14}" text-anchor="middle">{b}</text>' for b in batches]
    drawn.append(f'<text class="faint" x="{WIDTH - RIGHT + 18}" y="{HEIGHT - 14}">batch</text>')
    names: list[tuple[float, str]] = []
    for device, own in devices.items():
        colour = f"var(--c{order.index(device) % 4})"
        own = sorted(own, key=lambda row: row["batch"])
        path = " ".join(f"{x(row['batch']):.1f},{y(row['ms']):.1f}" for row in own)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for row in own:
            at, name = x(row["batch"]), f"{device}, batch {row['batch']}: {ms(row)} ms"
            ends = y(row.get("low") or row["ms"]), y(row.get("high") or row["ms"])
            drawn.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}" stroke="{colour}"/>')
            drawn.append(
                f'<circle cx="{at:.1f}" cy="{y(row["ms"]):.1f}" r="3" fill="{colour}"><title>{_text(name)}</title></circle>'
            )
        names.append(
            (
                y(own[-1]["ms"]),
                f'<text x="{x(own[-1]["batch"]) + 8:.1f}" y="@" style="fill:{colour}">{_text(device)}</text>',
            )
        )
    drawn += _apart(names)
    return (
        f"<figure><figcaption>{_text(what)}, ms</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        f'aria-label="{_text(what)}: milliseconds by batch size">'
        f"{''.join(drawn)}</svg></figure>"
    )


def _apart(names: list[tuple[float, str]]) -> list[str]:
    """Texts at their heights, a line apart."""
    made, last = [], -math.inf
    for height, text in sorted(names):
        last = max(height, last + 14)
        made.append(text.replace("@", f"{last + 4:.1f}"))
    return made


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, 1, 2 and 5 times powers of ten, around what is shown; at most some eight."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if len(powers) > 4 else (1, 2, 5)
    ticks = [step * 10.0**power for power in powers for step in steps]
    under, over = max(t for t in ticks if t <= low), min((t for t in ticks if t >= high), default=ticks[-1])
    return [t for t in ticks if under <= t <= over]


def _bars(found: Results) -> str:
    """The speed of the first device beside the second, case by case."""
    order = named(found)
    if len(order) < 2:
        return ""
    ratios = [(case, speed(rows.get(order[0]), rows.get(order[1]))) for case, rows in found.cases()]
    known = [(case, ratio) for case, ratio in ratios if ratio]
    if not known:
        return ""
    scale = BAR / max(1.0, *(ratio for _, ratio in known))
    drawn = []
    for k, (case, ratio) in enumerate(known):
        at = 8 + k * ROW
        drawn.append(f'<text x="{LABEL - 8}" y="{at + 14}" text-anchor="end">{_text(case.network)} {case.batch}</text>')
        drawn.append(
            f'<rect x="{LABEL}" y="{at + 3}" width="{ratio * scale:.1f}" height="{ROW - 6}" fill="var(--c0)"/>'
        )
        drawn.append(f'<text x="{LABEL + BAR + 8}" y="{at + 14}">{share(ratio)}</text>')
    tall, one = 16 + ROW * len(known), LABEL + scale
    drawn.append(f'<line x1="{one:.1f}" x2="{one:.1f}" y1="0" y2="{tall}" stroke="var(--c1)" stroke-dasharray="4 3"/>')
    what = f"Speed of {order[0]}; the dashed line is {order[1]}"
    return (
        f'<h2>{_text(what)}</h2><svg viewBox="0 0 {LABEL + BAR + 70} {tall}" width="{LABEL + BAR + 70}" role="img" '
        f'aria-label="{_text(what)}">{"".join(drawn)}</svg>'
    )


def _text(value: str) -> str:
    return html.escape(value)
