"""Rows of measurements, how they are judged, and how devices compare. JSON in, JSON out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from syncscope.errors import UserError

SAME = 1e-3  # relative difference of losses that float32 explains


class Case(NamedTuple):
    """What rows of several devices have in common."""

    network: str
    which: str  # pass
    batch: int
    dtype: str


@dataclass(slots=True)
class Results:
    """Devices by name, with their measured ceilings, and rows; as JSON `{"devices": {...}, "rows": [...]}`."""

    devices: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def judge(self) -> None:
        """Gives each row the shares of the ceilings that it reaches, and what binds it: the largest of them."""
        for row in self.rows:
            ceiling = self._ceiling(row["device"])
            if not row.get("ms") or not row.get("bytes") or not ceiling:
                continue
            seconds = row["ms"] / 1e3
            shares = {
                "flops": row["flops"] / ceiling["flops"] / seconds,
                "memory": row["bytes"] / ceiling["bandwidth"] / seconds,
            }
            if row["device"] != "cpu":
                shares["host"] = row["host_ms"] / row["ms"]
            row["reached"] = {name: round(share, 3) for name, share in shares.items()}
            row["bound_by"] = max(shares, key=lambda name: shares[name])

    def _ceiling(self, device: str) -> dict[str, float] | None:
        """What the device reached in any guise: `ocl` and `cuda` may be one GPU, whose ceiling is the higher of the two."""
        mine = self.devices.get(device)
        if mine is None or "flops" not in mine:
            return None
        same = [d for d in self.devices.values() if d.get("name") == mine["name"]]
        return {key: max(d[key] for d in same if key in d) for key in ("flops", "bandwidth")}

    def cases(self) -> Iterator[tuple[Case, dict[str, dict[str, Any]]]]:
        """Each case, and the row of each device, in the order they came."""
        found: dict[Case, dict[str, dict[str, Any]]] = {}
        for row in self.rows:
            case = Case(row["network"], row["pass"], row["batch"], row.get("dtype", "float32"))
            found.setdefault(case, {})[row["device"]] = row
        yield from found.items()

    def text(self) -> str:
        """As JSON."""
        return json.dumps({"schema": 1, "devices": self.devices, "rows": self.rows}, indent=1)

    @classmethod
    def read(cls, path: str) -> Results:
        """What `text` wrote.

        Raises:
            UserError: no such file, or another kind of file.
        """
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            if found.get("schema", 1) != 1:
                raise UserError(
                    f"{path} is of a later syncscope: schema {found['schema']}, known is 1", "install that one"
                )
            return cls(dict(found.get("devices", {})), [dict(row) for row in found["rows"]])
        except OSError as error:
            raise UserError(
                f"cannot read {path}: {error.strerror}", "it is what `syncscope bench --format json` wrote"
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"{path} holds no measurements", "it is what `syncscope bench --format json` wrote"
            ) from error


def speed(ours: dict[str, Any] | None, other: dict[str, Any] | None) -> float | None:
    """How fast the first is beside the second: 0.7 is 70 %; None where one of them has no time."""
    if not ours or not other or not ours.get("ms") or not other.get("ms"):
        return None
    return float(other["ms"] / ours["ms"])


def mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean: that of ratios."""
    known = [v for v in values if v]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def apart(ours: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest relative difference of the losses of two rows; 0 where one has none."""
    pairs = zip(ours.get("losses") or [], other.get("losses") or [], strict=False)
    return max((abs(a - b) / max(abs(b), 1e-6) for a, b in pairs), default=0.0)


def lost(ours: dict[str, Any], other: dict[str, Any], count: int = 5) -> list[tuple[str, float, float]]:
    """The operators on which the first loses most time against the second: name, its milliseconds, the other's."""
    mine, theirs = ours.get("operators") or {}, other.get("operators") or {}
    common = [(name, ms, theirs[name]) for name, ms in mine.items() if name in theirs and ms > theirs[name]]
    return sorted(common, key=lambda item: item[2] - item[1])[:count]
