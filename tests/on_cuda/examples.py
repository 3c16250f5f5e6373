"""Runs the examples of one rule on CUDA and prints as JSON which of their lines made the host wait, as torch tells it.

python tests/on_cuda/examples.py nonzero
"""

import copy
import inspect
import json
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1]))

from rules.equivalence import arguments, last_function

from syncscope.rules import builtin, examples

FILE = "<example>"
DRAWS = 12
device = torch.device("cuda")
seen: set[int] = set()


def show(message: object, *_: object, **__: object) -> None:
    if "called a synchronizing" in str(message):
        seen.update([f.lineno or 0 for f in traceback.extract_stack() if f.filename == FILE][-1:])


def moved(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to(device).requires_grad_(value.requires_grad)
    if isinstance(value, torch.nn.Module):
        return value.to(device)  # in place: an optimizer keeps its parameters
    if isinstance(value, (list, tuple)):  # a loader's batches
        return type(value)(moved(v) for v in value)
    return device if isinstance(value, torch.device) else value


def waited(code: str, inputs: str) -> tuple[list[int], int]:
    """The lines that waited over some random inputs, and how many of those the function took."""
    function = last_function(code)
    seen.clear()
    done = 0

    @settings(
        max_examples=DRAWS, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def go(data: st.DataObject) -> None:
        nonlocal done
        drawn = data.draw(arguments(inputs))
        try:
            function(**copy.deepcopy(drawn))
        except Exception:
            return  # not every input suits, and on CUDA an index out of bounds would end the context
        torch.cuda.set_sync_debug_mode("warn")
        try:
            function(**{name: moved(value) for name, value in drawn.items()})
            done += 1
        finally:
            torch.cuda.set_sync_debug_mode(0)

    go()
    return sorted(seen), done


def main() -> None:
    torch.ones(1, device=device).item()
    warnings.simplefilter("always")
    torch.set_warn_always(True)
    warnings.showwarning = show
    found = []
    for number, example in enumerate(examples(sys.argv[1], builtin()[sys.argv[1]])):
        for code in (example.code, example.fixed):
            if code and example.inputs and "_assert_async" not in code:  # an assertion that fails ends CUDA's context
                code = inspect.cleandoc(code)
                lines, runs = waited(code, example.inputs)
                found.append({"example": number, "code": code, "waited": lines, "runs": runs})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
