"""One small report, as the segmentation sample gives it: three lines that wait, two of them known to a rule."""

import contextlib

import pytest
from exporters.browser import chromium, shown, watched

from syncscope.exporters import html
from syncscope.model.answer import Answer, Decision
from syncscope.model.bound import SavingBound
from syncscope.model.finding import Edit, Finding, Fix, Safety
from syncscope.model.line_use import LineUse, LineUses
from syncscope.model.report import Group, Line, Price, Read, Report, Step
from syncscope.model.source import Place, Span
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace
from syncscope.model.uses import Spent, StepUses, Use
from syncscope.model.what_if import WhatIf
from syncscope.model.work import KernelLine, OperatorLine, Work

MS = 1_000_000  # ns
PATH = "train.py"
SOURCE = b"""\
import torch

def loss(logits, target):
    target = target.clone()
    background = torch.nonzero(target == 9, as_tuple=True)
    target[background] = -1
    if torch.unique(target).numel() < 2:
        return logits.sum() * 0.0
    keep = target != -1
    return cross_entropy(logits[keep], target[keep])
"""
HOST = Lane(4242, 4242, label="python")
QUEUE = Lane(4242, 7, 0, "queue 7")
STEPS = 4


def span(text: bytes) -> Span:
    start = SOURCE.index(text)
    return Span(start, start + len(text))


def finding(rule: str, line: int, message: str, fix: Fix | None = None) -> Finding:
    return Finding(rule, Place(PATH, line), 5, line, 10, Span(0, 0), message, 3, fix=fix, function="loss")


def events():
    """Steps of 10 ms: a kernel of 6 ms, a read of 4 bytes that waits for it, 2 ms of host work with the device idle."""
    for index in range(STEPS):
        start, number = 10 * MS * index, 10 * index
        yield Event(Kind.STEP, f"ProfilerStep#{index}", HOST, start, 9 * MS)
        yield Event(Kind.OP, "aten::conv2d", HOST, start + MS, MS // 2, external=number)
        yield Event(Kind.CALL, "clEnqueueNDRangeKernel", HOST, start + MS, 9_000, number, number)
        yield Event(
            Kind.KERNEL,
            "conv2d",
            QUEUE,
            start + MS + 20_000,
            6 * MS,
            number,
            number,
            detail='{"grid":[64,1,1],"block":[64,1,1]}',
        )
        at = start + 2 * MS
        place = Place(PATH, 5)
        yield Event(Kind.OP, "aten::nonzero", HOST, at, 6 * MS, external=number + 1)
        yield Event(Kind.READ, "nonzero", HOST, at, 6 * MS, place=place, column=18)
        yield Event(
            Kind.CALL, "clEnqueueReadBuffer", HOST, at + 1000, 5 * MS, number + 1, number + 1, 4, flags=Flag.BLOCKING
        )
        yield Event(Kind.COPY, "Memcpy DtoH", QUEUE, start + 7 * MS + 30_000, 4_000, number + 1, number + 1, 4)


@pytest.fixture
def trace() -> Trace:
    return Trace.of(events(), devices=[{"id": 0, "name": "Example GPU", "totalGlobalMem": 8 << 30}], origin_ns=0)


@pytest.fixture
def report(trace: Trace) -> Report:
    rewrite = Fix(
        "torch.where instead of index assignment",
        (
            Edit(
                span(b"background = torch.nonzero(target == 9, as_tuple=True)"),
                "target = torch.where(target == 9, -1, target)",
            ),
            Edit(span(b"    target[background] = -1\n"), ""),
        ),
        Safety.SAFE,
    )
    nonzero = finding("nonzero", 5, "the number of `background` pixels must reach the host", rewrite)
    unique = finding("unique", 7, "how many labels there are must reach the host")
    cold = finding("boolean-mask-index", 10, "`logits[keep]` has a shape that depends on data")
    steps = tuple(Step(i, 10 * MS * i, 10 * MS * i + 9 * MS, 6 * MS) for i in range(STEPS))
    reads = tuple(
        Read(
            "nonzero",
            s.start + 2 * MS,
            s.start + 8 * MS,
            5 * MS,
            4242,
            Place(PATH, 5),
            18,
            "",
            4,
            s.index,
            -1,
            5 * MS,
            MS,
        )
        for s in steps
    )
    lines = (
        Line(
            "nonzero",
            nonzero.place,
            1.0,
            5.0 * MS,
            1.2 * MS,
            "loss",
            Price(0.1 * MS, 2 * MS, 1.1 * MS, 1e4, 0.9 * MS),
            "nonzero",
            nonzero,
            answer=Answer(Decision.FIX, 1.1 / 9, 0.1, 0.14, 3 / 9, 24, 9, "likely 12.2% of a step"),
        ),
        Line(
            "unique",
            unique.place,
            1.0,
            0.2 * MS,
            0.9 * MS,
            "loss",
            Price(0.02 * MS, 0.5 * MS, 0.2 * MS, 1e4),
            "unique",
            unique,
            answer=Answer(Decision.TRY, 0.2 / 9, -0.01, 0.14, 3 / 9, 24, 9, "measuring it settles it"),
        ),
        Line("item", None, 2.0, 0.1 * MS, 0.0, "Optimizer.step", Price(0.0, 900.0, 400.0, 100.0)),
        Line("item", Place("/home/someone/a/very/long/path/to/a/project/metrics.py", 310), 0.25, 31_000.0, 2_000.0),
    )
    idle = {
        Use.COMPUTE: Spent(Use.COMPUTE, 6.0 * MS),
        Use.COPY: Spent(Use.COPY, 4_000.0),
        Use.WAIT: Spent(Use.WAIT, 1.996 * MS, (("train.py:5 nonzero", 1.9 * MS), ("train.py:7 unique", 0.096 * MS))),
        Use.HOST: Spent(Use.HOST, 1.0 * MS, (("forward (train.py:3)", 1.0 * MS),)),
    }
    spent = tuple(idle.get(use, Spent(use, 0.0)) for use in Use)
    each = tuple(int(one.time) for one in spent)
    words = (
        "The device has nothing to do for 33% of a step. For 67% of that it stands still because the host had waited."
    )
    work = Work(
        (KernelLine("conv2d", "kernel", 1.0, 6.0 * MS, 6 * MS), KernelLine("Memcpy DtoH", "copy", 1.0, 4_000.0, 4_000)),
        (
            OperatorLine("aten::conv2d", "8x3x64x64", 1.0, 6.0 * MS, 3e9, 1e7, "arithmetic", 0.5, ("conv2d",)),
            OperatorLine("Memcpy DtoH", "", 1.0, 4_000.0, 0.0, 0.0, "", 0.0, ("Memcpy DtoH",)),
        ),
        *(1e11, 1e12, 0.0, "an example"),
    )
    library = Place("/env/lib/python3.12/site-packages/losses/focal.py", 40)
    by_line = LineUses(
        9.0 * MS,
        9.0 * MS,
        (
            LineUse(
                *(Place(PATH, 5), "loss"),
                launches=1,
                driver=9_000,
                between=0.991 * MS,
                waiting=5 * MS,
                device=3.5 * MS,
                bytes=4.0,
                waits=1.0,
                idle=2.996 * MS,
                kernels=(("conv2d", 3.5 * MS),),
            ),
            LineUse(
                *(library, "focal", True, Place(PATH, 10)),
                launches=3,
                driver=0.5 * MS,
                between=1.0 * MS,
                device=1.0 * MS,
                backward=1.5 * MS,
                since=Place(PATH, 7),
                kernels=(("focal", 2.5 * MS),),
            ),
            LineUse(None, between=1.5 * MS, device=4_000.0),
        ),
    )
    return Report(
        by_line=by_line,
        what_if=(
            WhatIf(
                "launches cost nothing",
                2.0 * MS,
                1.5 * MS,
                2.5 * MS,
                2.996 * MS,
                (library, Place(PATH, 5)),
                "`torch.cuda.graph` around what has fixed shapes; no graph can hold a wait, so first the one at train.py:5",
            ),
            WhatIf(
                "nothing waits", 1.4 * MS, 1.0 * MS, 1.8 * MS, 2.0 * MS, (Place(PATH, 5),), rewrite.title, "nonzero"
            ),
        ),
        findings=(nonzero, unique, cold),
        steps=steps,
        step=9.0 * MS,
        step_range=(9.0 * MS, 9.0 * MS),
        saving_step=9.0 * MS,
        reads=reads,
        lines=lines,
        device_busy=0.667,
        fidelity=0.0021,
        saving=1.4 * MS,
        lean_step=8.0 * MS,
        lean_saving=1.5 * MS,
        plan=(0,),
        plan_saving=1.3 * MS,
        groups=(Group("function", "loss", 2.0, 5.2 * MS, Price(1.2 * MS, 1.4 * MS, 1.3 * MS, 0.0)),),
        bound=SavingBound(9.0 * MS, 6.0 * MS, 2.0 * MS, 6.03 * MS),
        answer=Answer(Decision.FIX, 1.4 / 9, 0.12, 0.2, 3 / 9, 24, 9, "likely 15.6% of a step"),
        verdict="Decision: fix. Fixing train.py:5 gives 1.10 of the 1.40 ms (16 % of a step) that all syncs cost. Try it.",
        lead="Fixing train.py:5 gives 1.10 of the 1.40 ms (16 % of a step) that all syncs cost.",
        further="Fixing all waits saves at most 33.3% of a step: the device works for 66.7% of it.",
        notes=("12 events were cut off at the end of the file and are missing",),
        trace=trace,
        sources={PATH: SOURCE},
        name="train.pt.trace.json.gz",
        uses=StepUses(9.0 * MS, spent, (each,) * STEPS, words),
        work=work,
    )


@pytest.hookimpl(tryfirst=True)  # xdist asks for groups then
def pytest_collection_modifyitems(items):
    """All that look at pages in one worker: else each has a browser of its own for each file."""
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group("pages"))


_opened = contextlib.ExitStack()  # what is open
_browsers = []


@pytest.fixture
def browser():
    """One for all tests of pages that follow one another, no longer: the loop that it is driven by must be gone before others
    in this process run theirs."""
    if not _browsers:
        _browsers.append(_opened.enter_context(chromium()))
    return _browsers[0]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem):
    if "browser" not in getattr(nextitem, "fixturenames", ()):
        _browsers.clear()
        _opened.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens the page of a report; fails if it complains or asks for anything that is not in it."""
    opened = []

    def of(report: Report, **options):
        file = tmp_path / "report.html"
        file.write_text(html.export(report), encoding="utf-8")
        opened.append(watched(browser, **options))
        return shown(opened[-1].__enter__(), file)

    yield of
    for page in opened:
        page.__exit__(None, None, None)
