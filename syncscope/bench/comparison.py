"""Measurements as a reader wants them: a table of cases and devices, what each device is, and where the first one loses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from syncscope.bench.results import SAME, Case, Results, apart, lost, mean, speed

PASSES = {"train": "training", "forward": "inference", "backward": "backward pass"}


@dataclass(slots=True)
class SideBySide:
    """Everything in words and numbers; cells are text."""

    title: str
    heads: list[str]
    table: list[list[str]] = field(default_factory=list)
    verdict: str = ""  # the first device beside the second, over all cases
    devices: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def named(found: Results) -> list[str]:
    """The devices with rows; the first is the one that is judged, the second what it is judged by."""
    return list(dict.fromkeys(row["device"] for row in found.rows))


def compared(found: Results, before: Results | None = None) -> SideBySide:
    """The rows of all devices side by side, and those of an earlier run if there is one."""
    devices = named(found)
    first, second = (devices[0], devices[1] if len(devices) > 1 else "") if devices else ("", "")
    cases = list(found.cases())
    passes = list(dict.fromkeys(PASSES.get(case.which, case.which) for case, _ in cases))
    dtypes = list(dict.fromkeys(case.dtype for case, _ in cases))
    earlier = dict(before.cases()) if before else {}
    heads = ["network", "batch", *devices, *[f"{first}/{second}"] * bool(second), *["before"] * bool(before)]
    heads += ["forward/backward/optimizer", "reaches", "bound by"]
    autocast = "".join(f", {dtype} by autocast" for dtype in dtypes if dtype != "float32" and len(dtypes) == 1)
    made = SideBySide(f"{', '.join(passes)}, ms an iteration{autocast}", heads)
    ratios = []
    for case, rows in cases:
        mine, other = rows.get(first, {}), rows.get(second, {})
        cells = [_label(case, passes, dtypes), str(case.batch), *(ms(rows.get(device)) for device in devices)]
        if second:
            ratios.append(speed(mine, other))
            cells.append(share(ratios[-1]))
        if before:
            cells.append(share(speed(mine, earlier.get(case, {}).get(first))))
        cells.append(" / ".join(f"{mine[part]:.3g}" for part in ("forward", "backward", "optimizer") if part in mine))
        cells.append(", ".join(f"{name} {value:.0%}" for name, value in mine.get("reached", {}).items()))
        cells.append(mine.get("bound_by", ""))
        made.table.append(cells)
        made.notes += _notes(case, rows, first, second)
    if (middle := mean(ratios)) is not None and len(ratios) > 1:
        count = sum(ratio is not None for ratio in ratios)
        made.verdict = f"{first} has {middle:.0%} of the speed of {second} (geometric mean of {count})"
    made.devices = [_about(name, device) for name, device in found.devices.items()]
    return made


def _label(case: Case, passes: list[str], dtypes: list[str]) -> str:
    more = [PASSES.get(case.which, case.which)] * (len(passes) > 1) + [case.dtype] * (len(dtypes) > 1)
    return ", ".join([case.network, *more])


def _notes(case: Case, rows: dict[str, dict[str, Any]], first: str, second: str) -> list[str]:
    mine, other, what = rows.get(first, {}), rows.get(second, {}), f"{case.network} {case.batch}"
    notes = [f"{what}: on {device} {row['error']}" for device, row in rows.items() if row.get("error")]
    if (off := apart(mine, other)) > SAME:
        notes.append(f"{what}: the first losses of {first} and {second} differ by {off:.1e}")
    for name, here, there in lost(mine, other):
        notes.append(f"{what}: {name} takes {here:.3g} ms on {first}, {there:.3g} on {second}")
    if mine.get("fallbacks"):
        notes.append(f"{what}: {mine['fallbacks']} fallbacks to the CPU in a step")
    return notes


def _about(name: str, device: dict[str, Any]) -> str:
    reaches = ""
    if "flops" in device:
        kind = f" in {device['dtype']}" if device.get("dtype", "float32") != "float32" else ""
        reaches = f"; reaches {device['flops'] / 1e12:.3g} TFLOPS{kind}, {device['bandwidth'] / 1e9:,.0f} GB/s"
    return f"{name}: {device.get('name')} ({device.get('about')}){reaches}"


def ms(row: dict[str, Any] | None) -> str:
    """Milliseconds; `-` where it did not fit."""
    return "" if row is None else f"{row['ms']:.4g}" if row.get("ms") else "-"


def share(value: float | None) -> str:
    """A ratio in percent."""
    return "" if value is None else f"{value:.0%}"
