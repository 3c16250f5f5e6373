"""The whole story on real input: lint the segmentation sample, record it, read the report, rewrite it, compare, prove it.

Everything runs on the OpenCL device that comes with the installation; a GPU is not needed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = "samples/segmentation.py"
RUNS = Path("runs/demo")  # everything is told from the root of the checkout

console = Console()


def tell(title: str, text: str, *command: str, expect: tuple[int, ...] = (0,)) -> None:
    """Print what comes next, run it, and stop the demonstration if it fails."""
    console.rule(f"[bold]{title}")
    console.print(text, style="dim")
    shown = " ".join(command).replace(sys.executable, "python").replace("python -m syncscope", "syncscope")
    console.print(f"$ {shown}\n", style="bold cyan", highlight=False, soft_wrap=True)
    code = subprocess.run(command, check=False).returncode
    if code not in expect:
        sys.exit(f"that ended with exit code {code}")
    console.print()


def recording(name: str) -> str:
    """The newest recording of that run."""
    return str(max((RUNS / name).rglob("*.pt.trace.json.gz"), key=lambda path: path.stat().st_mtime))


def main() -> None:
    """Tell the story."""
    os.chdir(ROOT)
    # Where the CPU is the device, it gets all cores but one: a GPU would not slow the host down either.
    cores = str(max(1, (os.cpu_count() or 2) - 1))
    os.environ |= {"POCL_CPU_MAX_CU_COUNT": cores, "POCL_MAX_PTHREAD_COUNT": cores}
    python, syncscope = (sys.executable,), (sys.executable, "-m", "syncscope")
    train = (*python, SAMPLE, "--device", "ocl", "--steps", "10")
    tell("1  before running", "Where will the host wait, and what could stand there instead?",
         *syncscope, "lint", "--diff", SAMPLE, expect=(0, 1))  # fmt: skip
    tell("2  while running", "The same loop, recorded: every kernel, every copy, every wait with its line.",
         *train, "--trace", str(RUNS / "written"))  # fmt: skip
    tell("3  after", "What each line did to the step.",
         *syncscope, "report", recording("written"))  # fmt: skip
    tell("4  rewritten", "The loss in fixed shapes: the same values, and nothing to wait for.",
         *train, "--fixed", "--trace", str(RUNS / "fixed"))  # fmt: skip
    tell("5  what it was worth", "Both recordings side by side.",
         *syncscope, "diff", recording("written"), recording("fixed"))  # fmt: skip
    tell("6  the proof", "One rewrite, tried on the program itself: promised, measured, and between what it lies.",
         *syncscope, "verify", "--rule", "boolean-mask-read", "--budget", "150s", "--steps", "8", SAMPLE,
         "--device", "ocl", expect=(0, 1, 3))  # fmt: skip  # 3: too little time, or others at work: it says so
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
