"""A page that lies beside its recording: whether it is whole, and what the list of runs says of it."""

from __future__ import annotations

import calendar
import gzip
import io
import time
import zlib

import msgspec

from syncscope.errors import UserError

MOST = 1 << 28  # bytes, unpacked: a page has 12 for each event, of which it draws a million

RECORDED = "%d %B %Y, %H:%M UTC"  # as pages say when


class _Read(msgspec.Struct):
    count: float


class _Coverage(msgspec.Struct):
    enough: bool = True


class Figures(msgspec.Struct):
    """What every page has. Lists and objects that are only drawn stay text."""

    schema: int
    name: str
    step_ms: float | None
    steps: msgspec.Raw
    device_busy: float | None
    verdict: str
    total_saving_ms: float | None
    plan: msgspec.Raw
    reads: list[_Read]
    lines: msgspec.Raw
    groups: msgspec.Raw
    findings: msgspec.Raw
    notes: list[str]
    page: dict[str, msgspec.Raw]
    coverage: _Coverage | None = None

    def __post_init__(self) -> None:
        lists = self.steps, self.plan, self.lines, self.groups, self.findings
        if self.schema != 1 or any(bytes(one).lstrip()[:1] != b"[" for one in lists) or "title" not in self.page:
            raise ValueError("no page of ours")

    @property
    def syncs(self) -> float | None:
        """Syncs a step; None where the recording cannot be judged by them."""
        if self.coverage is not None and not self.coverage.enough:
            return None
        return sum(read.count for read in self.reads)

    @property
    def recorded(self) -> float | None:
        """When it was recorded, s since 1970, to the minute; None where the recording does not say."""
        told = self.page.get("recorded")
        try:
            moment = msgspec.json.decode(told, type=str).partition(" · ")[0] if told else ""
            return float(calendar.timegm(time.strptime(moment, RECORDED)))
        except (ValueError, msgspec.DecodeError):
            return None


class _Page(msgspec.Struct):
    shown: Figures
    events: str


def figures(packed: bytes) -> Figures:
    """The figures of a page, packed.

    Raises:
        UserError: it is damaged, is larger than pages are, or is something else.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            text = file.read(MOST + 1)
        if len(text) > MOST:
            raise UserError("the page beside the recording is larger than pages are", "write it again")
        return msgspec.json.decode(text, type=_Page).shown
    except (OSError, EOFError, zlib.error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"the page beside the recording is damaged: {error}", "write it again") from None
