"""JSON for programs: docs/report-schema.json says what every field means. Times are milliseconds, per step."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from syncscope.exporters import _figures as figures
from syncscope.exporters._findings import finding, with_diff
from syncscope.model.answer import Answer, Decision
from syncscope.model.durations import ms
from syncscope.model.finding import Finding, all_told
from syncscope.model.report import Line, Price, Report
from syncscope.model.uses import StepUses, Use
from syncscope.model.worth import turn

if TYPE_CHECKING:
    from syncscope.model.bound import SavingBound
    from syncscope.model.coverage import Coverage
    from syncscope.model.line_use import LineUse
    from syncscope.model.memory import Held, MemoryUse
    from syncscope.model.source import Place
    from syncscope.model.trace import StepLengths
    from syncscope.model.what_if import WhatIf
    from syncscope.model.work import Work

SUFFIX = ".json"
TAKES = {"findings", "trace"}
WORK = True


def export(report: Report) -> str:
    """The whole report as one JSON object."""
    return json.dumps(as_object(report), indent=2, allow_nan=False) + "\n"


def export_findings(report: Report) -> str:
    """The findings alone, as a list: each has the number of its form."""
    also = set(map(id, report.also))
    told = all_told(report.findings, report.also)
    # whatever files were named first
    turns = sorted(range(len(told)), key=lambda n: (turn(told[n]), told[n].place.path, told[n].place.line))
    rank = {n: number for number, n in enumerate(turns, 1)}
    listed = [{"schema": 1, **finding(f), "also": id(f) in also, "rank": rank[n]} for n, f in enumerate(told)]
    return json.dumps(listed, indent=2) + "\n"


def as_object(report: Report) -> dict[str, Any]:
    """The report as JSON values. `reads` has an entry for each op at each place, `lines` one for each place."""
    without_wait = {id(found) for found in figures.without_wait(report)}

    def ran(found: Finding) -> bool | None:
        return True if id(found) not in without_wait else None if report.refused else False

    parts = report.uses.steps if report.uses else ()
    lengths, first = figures.durations(report), figures.todo(report)
    return {
        "schema": 1,
        "name": report.name,
        "trace": recording(report),
        "fidelity": report.fidelity,
        "unexplained": report.unexplained,
        "silent": report.silent,
        "late": dict(report.late),
        "step_ms": ms(report.step),
        "step_range_ms": [ms(t) for t in report.step_range] if report.step_range else None,
        "saving_step_ms": ms(figures.saving_step(report)),
        "steps": [
            {
                "index": step.index,
                "start_ms": ms(step.end - lengths[number]),
                "ms": ms(lengths[number]),
                "busy_ms": ms(step.busy) if report.device_busy is not None else None,
                "uses_ms": dict(zip(Use, map(ms, parts[number]), strict=True)) if number < len(parts) else None,
            }
            for number, step in enumerate(report.steps)
        ],
        "uses": uses(report.uses),
        "what_if": [what_if(one) | {"first": one is first} for one in report.what_if],
        "by_line": [by_line(one) for one in report.by_line.lines] if report.by_line else [],
        "work": work(report.work),
        "memory": [memory(one) for one in report.memory],
        "device_busy": report.device_busy,
        "busy_by_device": [{"device": number, "busy": share} for number, share in report.busy_by_device],
        "answer": answer(report.answer),
        "bound": bound(report.bound),
        "verdict": report.verdict,
        "total_saving_ms": ms(report.saving),
        "total_saving_range_ms": [ms(t) for t in report.saving_range] if report.saving_range else None,
        "plan": [
            {
                "path": line.place.path if line.place else None,
                "line": line.place.line if line.place else None,
                "op": line.op,
                "read": index,
            }
            for index, line in ((index, report.lines[index]) for index in report.plan)
        ],
        "plan_saving_ms": ms(report.plan_saving),
        "plan_saving_range_ms": [ms(t) for t in report.plan_range] if report.plan_range else None,
        "lean_step_ms": ms(report.lean_step),
        "lean_saving_ms": ms(report.lean_saving),
        "reads": [entry([line], report) for line in report.lines],
        "lines": [entry(lines, report) for lines in by_place(report.lines)],
        "groups": [
            {
                "kind": group.kind,
                "name": group.name,
                "count": round(group.count, 6),
                "blocked_ms": ms(group.blocked),
                "saved_alone_ms": ms(group.price.alone),
                "saved_last_ms": ms(group.price.last),
                "share_ms": ms(group.price.share),
            }
            for group in report.groups
        ],
        "findings": [{**finding(f), "fix": with_diff(f, report), "ran": ran(f)} for f in report.findings],
        "coverage": coverage(report.coverage),
        "notes": list(report.notes),
        "verified": None if report.verified is None else dict(report.verified),
    }


def answer(found: Answer | None) -> dict[str, Any] | None:
    """What to do, and the figure that it rests on, in parts of a step."""
    if found is None:
        return None
    shares = {name: getattr(found, name) for name in ("share", "low", "high", "bound", "offered", "most")}
    rounded = {name: None if share is None else round(share, 6) for name, share in shares.items()}
    counts = {"measured": found.measured, "loops": found.loops}
    return {"decision": found.decision, **rounded, **counts, "along": found.along or None, "why": found.why}


def of_lines(lines: list[Line]) -> dict[str, Any] | None:
    """The answer of the lines at one place: of several the dearest decides, and their figures add up."""
    known = [line.answer for line in lines if line.answer is not None]
    if len(known) < 2:
        return answer(known[0] if known else None)
    first = min(known, key=lambda one: list(Decision).index(one.decision))

    def total(name: str) -> float | None:
        values = [value for one in known if (value := getattr(one, name)) is not None]
        return min(sum(values), first.bound if first.bound is not None else 1.0) if values else None

    return answer(replace(first, share=total("share"), low=total("low"), high=total("high")))


def coverage(found: Coverage | None) -> dict[str, Any] | None:
    """What the recording has and lacks, and whether it can be judged."""
    if found is None:
        return None
    return {
        "enough": not found.refusal,
        "why_not": found.refusal or None,
        "hint": found.hint or None,
        "words": found.words,
        "has": list(found.has),
        "lacks": [{"what": what, "how": how} for what, how in found.lacks],
    }


def bound(found: SavingBound | None) -> dict[str, Any] | None:
    """What no fix of waits can pass."""
    if found is None:
        return None
    return {
        "share": round(found.share, 6),
        "least_ms": ms(found.least),
        "left": found.left,
        "device_ms": ms(found.device),
        "host_ms": ms(found.host),
        "chain_ms": ms(found.chain) if found.chain else None,
    }


def uses(found: StepUses | None) -> dict[str, Any] | None:
    """Where a step goes."""
    if found is None:
        return None
    return {
        "step_ms": ms(found.step),
        "words": found.words,
        "parts": [
            {
                "use": one.use,
                "words": one.use.words,
                "idle": one.use.is_idle,
                "ms": ms(one.time),
                "by": [{"name": name, "ms": ms(ns)} for name, ns in one.by],
            }
            for one in found.spent
        ],
    }


def by_line(one: LineUse) -> dict[str, Any]:
    """What a line takes of a step; path and line are null where it is not known."""
    return {
        "path": one.place.path if one.place else None,
        "line": one.place.line if one.place else None,
        "function": one.function,
        "library": one.library,
        "caller": place(one.caller),
        "launches": round(one.launches, 6),
        "host_ms": ms(one.host),
        "device_ms": ms(one.device),
        "backward_ms": ms(one.backward),
        "waits": round(one.waits, 6),
        "idle_ms": ms(one.idle),
    }


def what_if(one: WhatIf) -> dict[str, Any]:
    """What a step would save if something were otherwise."""
    return {
        "name": one.name,
        "saving_ms": ms(one.saving),
        "low_ms": ms(one.low),
        "high_ms": ms(one.high),
        "bound_ms": ms(one.bound),
        "lines": [place(of) for of in one.lines],
        "advice": one.told,
        "loops": one.loops,
        "bought": one.bought,
    }


def place(found: Place | None) -> dict[str, Any] | None:
    """A file and a line."""
    return None if found is None else {"path": found.path, "line": found.line}


def memory(found: MemoryUse) -> dict[str, Any]:
    """What one device held when it held the most. Times are ms of the recording, as those of steps."""

    def whose(held: Held) -> dict[str, Any]:
        path, line = (held.place.path, held.place.line) if held.place else (None, None)
        return {
            "name": held.name,
            "path": path,
            "line": line,
            "function": held.function,
            "operator": held.operator,
            "bytes": held.bytes,
            "allocations": held.count,
        }

    return {
        "device": found.device,
        "peak_bytes": found.peak,
        "peak_at_ms": ms(found.peak_at),
        "peak_step": found.step if found.step >= 0 else None,
        "made_by": whose(found.made_by),
        "held": [whose(one) for one in found.held],
        "before_bytes": found.before if found.exact else None,
        "reserved_bytes": found.reserved,
        "allocations": found.allocations,
    }


def work(found: Work | None) -> dict[str, Any] | None:
    """What the device did, by kernel and by operator, per step."""
    if found is None:
        return None
    return {
        "kernels": [
            {
                "name": line.name,
                "kind": line.kind,
                "count": round(line.count, 6),
                "ms": ms(line.time),
                "longest_ms": ms(line.longest),
            }
            for line in found.kernels
        ],
        "operators": [
            {
                "op": line.op,
                "shapes": line.shapes,
                "count": round(line.count, 6),
                "ms": ms(line.time),
                "flops": line.flops,
                "bytes": line.bytes,
                "bound": line.bound,
                "reached": line.reached,
                "kernels": list(line.kernels),
                "arithmetic": line.arithmetic or None,
                "why": line.why or None,
            }
            for line in found.operators
        ],
        "modules": [
            {"path": list(line.path), "count": round(line.count, 6), "own_ms": ms(line.own), "ms": ms(line.time)}
            for line in found.modules
        ],
        "ceilings": {
            "bytes_per_s": found.bandwidth,
            "flops_per_s": found.flops,
            "flops_tf32_per_s": found.flops_tf32,
            "flops_16_per_s": found.flops_16,
            "from": found.source,
        }
        if found.bandwidth
        else None,
    }


def recording(report: Report) -> dict[str, Any] | None:
    """What was recorded, in figures."""
    trace = report.trace
    if trace is None:
        return None
    return {
        "events": len(trace),
        "span_ms": ms(int(trace.end.max() - trace.start.min())) if len(trace) else 0.0,
        "devices": figures.devices(trace),
        "rank": trace.meta.get("rank"),
        "world_size": trace.meta.get("world_size"),
        "untraced": step_lengths(trace.meta.get("untraced")),
        "traced": step_lengths(trace.meta.get("traced")),
    }


def step_lengths(known: StepLengths | None) -> dict[str, Any] | None:
    """How long a step takes without the recorder, or with it, as the run itself measured it."""
    if known is None:
        return None
    return {
        "steps": known["steps"],
        "left_out": known["left_out"],
        "median_ms": ms(known["median_ns"]),
        "low_ms": ms(known["low_ns"]),
        "high_ms": ms(known["high_ns"]),
    }


def by_place(lines: Iterable[Line]) -> list[list[Line]]:
    """Lines at one place, reached from one, together, in the order of the first; those without a place stay apart."""
    groups: dict[object, list[Line]] = {}
    for line in lines:
        groups.setdefault((line.place, line.caller) if line.place else id(line), []).append(line)
    return list(groups.values())


def shares(prices: list[Price | None]) -> list[float | None] | None:
    """The interval of the sum of these lines' shares; None without prices."""
    low = [price.low for price in prices if price is not None and price.low is not None]
    high = [price.high for price in prices if price is not None and price.high is not None]
    return [ms(sum(low)), ms(sum(high))] if low and high else None


def entry(lines: list[Line], report: Report) -> dict[str, Any]:
    """One place: sums of counts and times. Savings of several ops do not add up: theirs together are the report's."""
    first, prices = lines[0], [line.price for line in lines]
    together = (group.price for group in report.groups if group.kind == "line" and group.name == first.where)
    single = prices[0] if len(lines) == 1 else next(together, None)
    known = [price.share for price in prices if price is not None]
    found = next((line.finding for line in lines if line.finding), None)
    return {
        "path": first.place.path if first.place else None,
        "line": first.place.line if first.place else None,
        "caller": place(first.caller),
        "op": ", ".join(dict.fromkeys(line.op for line in lines)),
        "module": first.module,
        "function": first.function,
        "count": round(sum(line.count for line in lines), 6) if report.counts_hold else None,
        "blocked_ms": ms(sum(line.blocked for line in lines)) if not report.refused else None,
        "idle_after_ms": ms(sum(line.idle_after for line in lines)) if not report.refused else None,
        "saved_alone_ms": ms(single.alone) if single else None,
        "saved_last_ms": ms(single.last) if single else None,
        "share_ms": ms(sum(known)) if known else None,
        "share_error_ms": ms(single.share_error) if single else None,
        "share_range_ms": shares(prices),
        "deferred_ms": ms(single.deferred) if single else None,
        "merged_ms": ms(single.merged) if single else None,
        "asynchronous_ms": ms(single.asynchronous) if single else None,
        "fallback": any(line.fallback for line in lines),
        "rule": next((line.rule for line in lines if line.rule), None),
        "answer": of_lines(lines),
        "advice": next((line.advice for line in lines if line.advice), None),
        "why": next((line.why for line in lines if line.why), None),
        "fix": with_diff(found, report) if found else None,
    }
