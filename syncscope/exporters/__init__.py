"""One format, one file: a report in, text out. `--format sarif` and `-o out.sarif` work by its name and its suffix.

A module here holds

    SUFFIX = ".sarif"                                a path that ends so is written in this format
    def export(report: Report) -> str | bytes: ...   the whole file

or, where the format is a folder of files, in place of `export`

    def write(report: Report, folder: Path) -> list[Path]: ...   what it wrote there
    def how_to_open(folder: Path) -> str: ...                    and what to do with it

Exporters compute no analysis: what is not in the `Report` is not shown. `report.sources` holds the text of the files that
were at hand, by the path that places name; the exporter reads no files of its own.
"""

from __future__ import annotations

import re


def stem(path: str) -> str:
    """What a trace's file is called, without the folders and the endings: `resnet` of `runs/resnet.pt.trace.json.gz`."""
    return re.sub(r"(\.pt)?(\.trace)?(\.json)?(\.gz)?$", "", path.replace("\\", "/").rpartition("/")[2])
