"""One format, one file: a report in, text out. `--format sarif` and `-o out.sarif` work by its name and its suffix.

A module here holds

    SUFFIX = ".sarif"                                a path that ends so is written in this format
    TAKES = {"findings"}                             what it shows: any of "findings" (of source) and "trace" (of a recording)
    def export(report: Report) -> str | bytes: ...   the whole file

or, where the format is a folder of files, in place of `export`

    def write(report: Report, folder: Path) -> list[Path]: ...   what it wrote there
    def how_to_open(folder: Path) -> str: ...                    and what to do with it

With that, every command offers it that has what it takes: `syncscope lint` has findings, `syncscope report` has both. Where the
findings alone are another document than the whole report, `export_findings(report)` is what `lint` prints. `WORK = True` asks
for `report.work`, which takes a moment to find out. `COMMANDS = True` is for text that is meant to command a CI runner, which
is else made harmless. `JOINS = True` says that several reports may follow one another in it.

Exporters compute no analysis: what is not in the `Report` is not shown. `report.sources` holds the text of the files that
were at hand, by the path that places name; the exporter reads no files of its own.
"""

from __future__ import annotations

import re


def stem(path: str) -> str:
    """What a trace's file is called, without the folders and the endings: `resnet` of `runs/resnet.pt.trace.json.gz`."""
    return re.sub(r"(\.pt)?(\.trace)?(\.json)?(\.gz)?$", "", path.replace("\\", "/").rpartition("/")[2])
