"""Cells of a notebook that runs in this process: `cell [12]` is what IPython counts as In[12], where code has no file.

IPython compiles each cell under the name of a file that is not there (`/tmp/ipykernel_27808/4009762954.py`), and says in
tracebacks which cell that is. It keeps the texts of them as they were run, magics as calls of Python.
"""

from __future__ import annotations

import linecache
import re
import sys
from typing import Any

NAME = re.compile(r"cell \[(\d+)\]")
_files: dict[str, str] = {}  # by the cell: the name under which it was compiled


def shell() -> Any:
    """The IPython in which the program runs; None elsewhere."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def named(file: str) -> str:
    """The cell that was compiled under this name; "" of any other."""
    told = getattr(getattr(shell(), "compile", None), "format_code_name", lambda _: None)(file)
    number = re.search(r"\d+", told[1]) if told else None
    if number is None:
        return ""
    name = f"cell [{number[0]}]"
    _files[name] = file
    return name


def lines(path: str) -> list[str]:
    """The lines of a cell, or of a file."""
    return linecache.getlines(_files.get(path, path))


def texts() -> dict[int, str]:
    """What was run in each cell, by its number; of cells that were run again as they are the last."""
    history = getattr(getattr(shell(), "history_manager", None), "input_hist_parsed", [])
    last = {text: number for number, text in enumerate(history) if number and text}
    return {number: text for text, number in sorted(last.items(), key=lambda item: item[1])}
