"""Jupyter notebooks: the code cells as one module, and edits written back into the cells they belong to.

The notebook's own JSON is kept: only the `source` values of changed cells are written anew, in the style of the old ones.
Format: https://nbformat.readthedocs.io (version 4; `source` is a string or a list of lines).
"""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from syncscope.errors import UserError
from syncscope.linter.source import C_SUFFIXES, CFile, SourceFile, splice
from syncscope.model.finding import Edit, Finding, Fix
from syncscope.model.heat import Heat, Reason
from syncscope.model.source import Place, Span

SPACE = re.compile(r"[ \t\n\r]*")
MAGIC = re.compile(
    rb"(?m)^([ \t]*+)(%(?:time|timeit|prun|capture)\b[ \t]|[%!?](?:[^\\\n]|\\[^\n]|\\\n)*|[^\n#'\"]*\?$)"
)
ASSIGNED = re.compile(rb"(?m)^([ \t]*+[\w., \t]++=[ \t]*+)([%!][^\n]*)")
SCAN = json.JSONDecoder()
LINE = re.compile(r"\bline (\d+)\b(?! of )")  # `line 5 of losses.py` is none of the cells'


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its number (from 1, all kinds counted), its text, where it lies in `code`, where its JSON lies."""

    number: int
    text: bytes
    start: int
    value: Span  # characters of the notebook's text
    line: int  # of `code`, where it begins


@dataclass(frozen=True, eq=False)
class Notebook(SourceFile):
    """The code cells of a notebook, one after another; magics and cells that are no Python are comments of the same length."""

    cells: tuple[Cell, ...] = ()
    broken: tuple[tuple[int, SyntaxError], ...] = ()  # cell number, and why it is no Python

    @classmethod
    def of(cls, path: str, raw: bytes) -> Notebook:
        """Read a notebook.

        Raises:
            SyntaxError: it is no JSON, or not a notebook.
        """
        try:
            whole = raw.decode("utf-8-sig")
            told = json.loads(whole)
            found = list(code_cells(whole)) if isinstance(told.get("cells"), list) else None
        except (ValueError, AttributeError, RecursionError) as error:
            line = getattr(error, "lineno", 1)
            raise SyntaxError(f"not a notebook: {error}", (path, line, getattr(error, "colno", 1), "")) from None
        if found is None:
            raise SyntaxError("not a notebook of format 4: it has no cells", (path, 1, 1, ""))
        if language(told) not in {"python", "ipython"}:
            found = []
        cells, pieces, broken, start, line = [], [], [], 0, 1
        for number, text, value in found:
            code, why = as_python(text)
            if why:
                broken.append((number, why))
            cells.append(Cell(number, text, start, value, line))
            pieces += [code, b"\n"]
            start += len(code) + 1
            line += code.count(b"\n") + 1
        code = b"".join(pieces)
        return cls(path, raw, code, text=code, cells=tuple(cells), broken=tuple(broken))

    @cached_property
    def _starts(self) -> list[int]:
        return [cell.start for cell in self.cells]

    def cell(self, offset: int) -> Cell:
        """The cell in which the byte at `offset` of `code` lies."""
        return self.cells[max(0, bisect_right(self._starts, offset) - 1)]

    def name(self, cell: Cell) -> str:
        """`train.ipynb:cell 3`, as `Finding.source_name` has it."""
        return f"{self.path}:cell {cell.number}"

    def at(self, line: int) -> tuple[Cell, int]:
        """The cell in which a line of `code` lies, and which of its own lines that is."""
        cell = self.cells[max(0, bisect_right(self.cells, line, key=lambda one: one.line) - 1)]
        return cell, line - cell.line + 1

    def with_cells(self, words: str) -> str:
        """What is said, where that names a line of `code`, with the cell and the line in it; quoted code stays."""

        def told(found: re.Match[str]) -> str:
            cell, line = self.at(int(found[1]))
            return f"line {line} of cell {cell.number}"

        parts = words.split("`")
        return "`".join(part if number % 2 else LINE.sub(told, part) for number, part in enumerate(parts))

    @cached_property
    def _whole(self) -> str:
        return self.raw.decode("utf-8-sig")

    def in_file(self, cell: Cell, line: int) -> int:
        """The line of the notebook's own text that has a line of a cell (from 1): its string of the list, or of all of it."""
        value = self._whole[cell.value.start : cell.value.end]
        above, before = self._whole.count("\n", 0, cell.value.start) + 1, 0
        for _, span in members(value, 0) if value.startswith("[") else ():
            text = str(SCAN.raw_decode(value, span.start)[0])
            before += text.count("\n")
            if line <= before + (not text.endswith("\n")):
                return above + value.count("\n", 0, span.start)
        return above

    def label(self, offset: int) -> str:
        """The name of the cell there."""
        return self.name(self.cell(offset)) if self.cells else self.path

    def texts(self) -> dict[str, bytes]:
        """Each cell's text by its name."""
        return {self.name(cell): cell.text for cell in self.cells}

    def versions(self, edits: Iterable[Edit]) -> Iterator[tuple[str, bytes, bytes]]:
        """Name, text before and text after of every cell that the edits change."""
        for cell, local in self._by_cell(edits):
            yield self.name(cell), cell.text, splice(cell.text, local)

    def _by_cell(self, edits: Iterable[Edit]) -> list[tuple[Cell, list[Edit]]]:
        changes: dict[int, list[Edit]] = {}
        cells = {}
        for edit in edits:
            cell = self.cell(edit.span.start)
            local = Span(edit.span.start - cell.start, edit.span.end - cell.start)
            if local.end > len(cell.text):
                raise UserError(f"{self.name(cell)}: a fix reaches over the end of the cell")
            if cell.text[local.start : local.end] != self.code[edit.span.start : edit.span.end]:
                raise UserError(f"{self.name(cell)}: a fix would change a magic")
            changes.setdefault(cell.number, []).append(Edit(local, edit.text))
            cells[cell.number] = cell
        return [(cells[number], changes[number]) for number in sorted(changes)]

    def edited(self, edits: Iterable[Edit]) -> bytes:
        """The notebook with the edits made in its cells, all else byte for byte.

        Raises:
            UserError: an edit reaches over the end of a cell, or changes a line that is no Python.
        """
        bom = b"\xef\xbb\xbf" if self.raw.startswith(b"\xef\xbb\xbf") else b""
        whole, at, pieces = self.raw[len(bom) :].decode(), 0, []
        for cell, local in self._by_cell(edits):
            new, old = splice(cell.text, local).decode(), whole[cell.value.start : cell.value.end]
            pieces += [whole[at : cell.value.start], as_json(new, like=old)]
            at = cell.value.end
        return bom + "".join([*pieces, whole[at:]]).encode()


def language(notebook: dict[str, object]) -> str:
    """What the cells are written in; Python where the notebook does not say."""
    meta = notebook.get("metadata")
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        said = meta.get(key) if isinstance(meta, dict) else None
        if isinstance(said, dict) and isinstance(said.get(name), str):
            return str(said[name]).lower()
    return "python"


def code_cells(whole: str) -> Iterator[tuple[int, bytes, Span]]:
    """Number, text and JSON span of each code cell's source."""
    top = members(whole, skip(whole, 0))
    start = next(span.start for key, span in top if key == "cells")
    for number, (_, span) in enumerate(members(whole, start), 1):
        fields = dict(members(whole, span.start))
        read = {key: SCAN.raw_decode(whole, fields[key].start)[0] for key in ("cell_type", "source") if key in fields}
        if read.get("cell_type") == "code" and "source" in read:
            source = read["source"]
            text = source if isinstance(source, str) else "".join(map(str, source))
            yield number, text.encode("utf-8", "replace"), fields["source"]


def members(text: str, start: int) -> Iterator[tuple[str, Span]]:
    """Key and span of each value of the JSON object or list that begins at `start`; a list's keys are empty."""
    close = "}" if text[start] == "{" else "]"
    at = skip(text, start + 1)
    while text[at] != close:
        key = ""
        if close == "}":
            key, at = SCAN.raw_decode(text, at)
            at = skip(text, skip(text, at) + 1)  # the colon
        end = SCAN.raw_decode(text, at)[1]
        yield key, Span(at, end)
        at = skip(text, end)
        if text[at] == ",":
            at = skip(text, at + 1)


def skip(text: str, at: int) -> int:
    """Past white space."""
    found = SPACE.match(text, at)
    return found.end() if found else at


def as_json(new: str, like: str) -> str:
    """A cell's text as JSON in the style of the value it replaces: string or list, indentation, escapes."""
    escape = like.isascii() and "\\u" in like
    if not like.startswith("["):
        return json.dumps(new, ensure_ascii=escape)
    lines = [json.dumps(line, ensure_ascii=escape) for line in new.splitlines(keepends=True)]
    if not lines:
        return "[]"
    had = [span for _, span in members(like, 0)]
    first = like[1 : skip(like, 1)]
    last = like[len(like[:-1].rstrip(" \t\r\n")) : -1]
    between = like[had[0].end : had[1].start] if len(had) > 1 else "," + (first or " ")
    return "[" + first + between.join(lines) + last + "]"


def as_python(text: bytes) -> tuple[bytes, SyntaxError | None]:
    """A cell with its magics as comments, or wholly as comments where it is no Python; the length stays."""
    first = text.lstrip()
    if first.startswith(b"%%"):
        name = re.match(rb"%%(\w*)", first)
        if not name or name[1] not in {b"time", b"timeit", b"capture", b"prun"}:
            return commented(text), None
        head = text.find(b"\n") % (len(text) + 1)
        text = commented(text[:head]) + text[head:]
    if parses(text) is None:
        return text, None
    masked = ASSIGNED.sub(lambda m: m[1] + (b"0" + b" " * (len(m[2]) - 1)), MAGIC.sub(mask, text))
    error = parses(masked)
    return (masked, None) if error is None else (commented(text), error)


def mask(found: re.Match[bytes]) -> bytes:
    """A magic as a harmless statement: `%time f(x)` still runs `f(x)`."""
    indent, magic = found[1], found[2]
    if re.match(rb"%(time|timeit|prun|capture)\b[ \t]", magic):
        return indent + b"0" + b" " * (len(magic) - 2) + b";"
    lines = magic.split(b"\n")
    return indent + b"\n".join([b"0" + b"#" * (len(lines[0]) - 1), *(b"#" * len(line) for line in lines[1:])])


def commented(text: bytes) -> bytes:
    """The same length and lines, and nothing to run."""
    return re.sub(rb"[^\n]", b"#", text)


def parses(code: bytes) -> SyntaxError | None:
    """Why this is no Python, if it is none."""
    try:
        ast.parse(code)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error) or type(error).__name__)
    return None


def source_of(path: str, raw: bytes) -> SourceFile:
    """The file as what its name says it is."""
    if path.endswith(C_SUFFIXES):
        return CFile.of(path, raw)
    return Notebook.of(path, raw) if path.endswith(".ipynb") else SourceFile.of(path, raw)


def presented(source: SourceFile, finding: Finding) -> Finding:
    """The finding as it is shown: in a notebook, all counts within the cell, and another line is named with its cell."""
    if not isinstance(source, Notebook) or not source.cells:
        return finding
    cell = source.cell(finding.span.start)
    shift = cell.line - 1

    def local(span: Span) -> Span:
        return Span(span.start - cell.start, span.end - cell.start)

    def within(fix: Fix | None) -> Fix | None:
        if fix is None or not all(
            cell.start <= e.span.start and e.span.end <= cell.start + len(cell.text) for e in fix.edits
        ):
            return None
        edits = tuple(Edit(local(e.span), e.text) for e in fix.edits)
        return replace(worded(source, fix), edits=edits, also=within(fix.also))

    return replace(
        finding,
        place=Place(finding.place.path, finding.place.line - shift),
        end_line=finding.end_line - shift,
        in_file=(source.in_file(cell, finding.place.line - shift), source.in_file(cell, finding.end_line - shift)),
        span=local(finding.span),
        cell=cell.number,
        message=source.with_cells(finding.message),
        heat=_in_cells(source, finding.heat),
        why=tuple(
            source.with_cells(head) + colon + code for head, colon, code in (w.partition(":") for w in finding.why)
        ),
        fix=within(finding.fix),
        advice=worded(source, finding.advice) if finding.advice is not None else None,
        why_not=source.with_cells(finding.why_not),
    )


def worded(source: SourceFile, fix: Fix) -> Fix:
    """The fix as it is told: in a notebook, another line is named with its cell. Its edits are those of all cells together."""
    if not isinstance(source, Notebook):
        return fix
    return replace(
        fix,
        title=source.with_cells(fix.title),
        terms=tuple(map(source.with_cells, fix.terms)),
        why_by_hand=source.with_cells(fix.why_by_hand),
        also=worded(source, fix.also) if fix.also is not None else None,
    )


def _in_cells(source: Notebook, heat: Heat) -> Heat:
    """A reason that names a line of the cells, joined as they are analysed, with the cell and the line in it."""
    of = _in_cells(source, heat.of) if heat.of is not None else None
    named = {Reason.BEFORE: Reason.BEFORE_IN, Reason.DRAINED: Reason.DRAINED_IN}.get(heat.reason)
    if heat.line:
        cell, line = source.at(heat.line)
        heat = replace(heat, line=line, caller=", ".join(filter(None, (heat.caller, f"cell {cell.number}"))))
    if named is None:
        return replace(heat, of=of)
    cell, line = source.at(int(heat.about[0]))
    return Heat(named, (str(line), f"cell {cell.number}"), of)
