"""The whole story on real input: lint the segmentation sample, record it, read the report, rewrite it, compare, prove it.

Everything runs on the OpenCL device that comes with the installation; a GPU is not needed. It takes about a minute, longer
beside much other work: the proof ends as soon as it decides. The last lines say what was found.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

import syncscope as library
from syncscope import kineto
from syncscope.exporters import terminal

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = "samples/segmentation.py"
RUNS = Path("runs/demo")  # everything is told from the root of the checkout
DATA = ("--device", "ocl", "--size", "32")
STEPS = "16"  # that are recorded
ENDLESS = "2000"  # of a run that ends with the proof: versions take turns in one process as long as it goes on
BUDGET = "150s"  # of the proof, where it does not decide before

console = Console()


def announce(title: str, text: str, *command: str) -> None:
    """Print what comes next."""
    console.rule(f"[bold]{title}")
    console.print(text, style="dim")
    shown = " ".join(command).replace(sys.executable, "python").replace("python -m syncscope", "syncscope")
    console.print(f"$ {shown}\n", style="bold cyan", highlight=False, soft_wrap=True)


def tell(title: str, text: str, *command: str, expect: tuple[int, ...] = (0,)) -> list[str]:
    """Print what comes next, run it, and give what it printed; stop the demonstration if it fails."""
    announce(title, text, *command)
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line)
    if running.returncode not in expect:
        sys.exit(f"that ended with exit code {running.returncode}")
    console.print()
    return lines


def recording(name: str) -> str:
    """The newest recording of that run."""
    return str(max((RUNS / name).rglob("*.pt.trace.json.gz"), key=lambda path: path.stat().st_mtime))


def losses(printed: list[str]) -> list[float]:
    """The losses that the sample prints."""
    return [float(word) for line in printed if line.startswith("loss ") for word in line.split()[1:]]


def proof(python: tuple[str, ...]) -> str:
    """One rewrite, tried on the program; in a sentence."""
    verify = ("verify", "--rule", "boolean-mask-read", "--steps", "8")
    told = (SAMPLE, *DATA, "--steps", ENDLESS)
    longer = f"in {BUDGET} on this machine; with ten minutes: {' '.join(('syncscope', *verify, *told))}"
    result = RUNS / "proof.json"
    result.unlink(missing_ok=True)
    within = ("--trace", recording("written"), "--budget", BUDGET, "-o", str(result))
    tell("6  the proof", "One rewrite, tried on the program itself, in turns with what is written: promised, measured, proved.",
         *python, *verify, *within, *told, expect=(0, 1, 3))  # fmt: skip  # 3: undecided
    found: dict[str, Any] = json.loads(result.read_text())
    if found.get("low") is None:
        return f"undecided {longer}"
    middle, low, high = (100 * (1 - found[end]) for end in ("ratio", "high", "low"))
    words = {"equal": "; values equal, bit for bit", "within": "; values differ by rounding alone"}
    values = words.get(found["values"], "")
    what = "shorter" if found["ratio_of"] == "time" else "less work for the processors, beside others' on this machine"
    measured = f"{middle:.0f} % {what} ({low:.0f} to {high:.0f} %)"
    if low <= 0 <= high:
        return f"{measured} so far{values}, undecided {longer}"
    return f"with one of the rewrites a step is {measured}, measured in turns{values}"


def waits_of(trace: Any) -> float:
    """How often the host read from the device in a step of a recording, of its later half."""
    from syncscope.model.trace import Kind

    steps, reads = trace.rows(Kind.STEP), trace.rows(Kind.READ)
    steps = steps[len(steps) // 2 :]
    within = (trace.start[reads] >= trace.start[steps[0]]) & (trace.start[reads] < trace.end[steps[-1]])
    return float(within.sum()) / len(steps)


def found(written: Any, waits: list[float], values: list[list[float]], proved: str) -> None:
    """What there is to be seen, in a line each."""
    apart = max((abs(a - b) / max(abs(a), 1e-12) for a, b in zip(*values, strict=True)), default=0.0)
    answer, bound = written.answer, written.bound
    console.rule("[bold]what was found")
    rows = {
        "waits": f"{waits[0]:.3g} a step as written, {waits[1]:.3g} rewritten",
        "values": f"the losses of {len(values[0])} steps "
        + (f"are within {apart:.1e} of each other" if apart else "are equal in every digit that is printed"),
        "bound": bound.words() if bound else "no work of a device was recorded",
        "decision": f"{answer.decision}: {f'likely {answer.figure}' if answer.figure else answer.why}",
        "proof": proved,
    }
    for name, text in rows.items():
        console.print(f"{name:9} {text}", highlight=False)
    console.print()


def main() -> None:
    """Tell the story."""
    os.chdir(ROOT)
    # Where the CPU is the device, it gets all cores but one: a GPU would not slow the host down either.
    cores = str(max(1, (os.cpu_count() or 2) - 1))
    os.environ |= {"POCL_CPU_MAX_CU_COUNT": cores, "POCL_MAX_PTHREAD_COUNT": cores}
    syncscope = (sys.executable, "-m", "syncscope")
    train = (sys.executable, SAMPLE, *DATA, "--steps", STEPS)
    tell("1  before running", "Where will the host wait, and what could stand there instead?",
         *syncscope, "lint", "--diff", SAMPLE, expect=(0, 1))  # fmt: skip
    written = tell("2  while running", "The same loop, recorded: every kernel, every copy, every wait with its line.",
                   *train, "--trace", str(RUNS / "written"))  # fmt: skip
    announce("3  after", "What can be had at most, what to do, and what each line did to the step.",
             *syncscope, "report", recording("written"))  # fmt: skip
    report = library.report(recording("written"))  # what the command does, without a process of its own
    console.print(terminal.render(report, console.width))
    fixed = tell("4  rewritten", "The loss in fixed shapes: the same values, and nothing to wait for.",
                 *train, "--fixed", "--trace", str(RUNS / "fixed"))  # fmt: skip
    tell("5  what it was worth", "Both recordings side by side: which waits are gone, and the step of each.",
         *syncscope, "diff", recording("written"), recording("fixed"))  # fmt: skip
    proved = proof(syncscope)
    waits = [waits_of(kineto.read(recording(name))) for name in ("written", "fixed")]
    found(report, waits, [losses(written), losses(fixed)], proved)
    console.rule("[bold]what to open")
    tools = os.path.relpath(Path(sys.executable).parent)
    console.print("The page of the recording, in TensorBoard's tab and in a file:")
    console.print(
        f"    {tools}/tensorboard --logdir {RUNS}     and http://localhost:6006/#syncscope",
        style="cyan",
        highlight=False,
        soft_wrap=True,
    )
    console.print(
        f"    {tools}/syncscope report {recording('written')} -o report.html",
        style="cyan",
        highlight=False,
        soft_wrap=True,
    )
    console.print('The same recording in Perfetto (ui.perfetto.dev, "Open trace file"):')
    console.print(f"    {recording('written')}", style="cyan", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
