"""What an editor holds, as the linter takes it, and places in it as the editor counts them.

A file is one part. A notebook is linted as one module, its cells are its parts: each has a URI of its own, by which the editor
speaks of it.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from lsprotocol import types as lsp
from pygls.workspace import PositionCodec, ServerTextPosition, ServerTextRange, Workspace

from syncscope.linter import engine, notebooks
from syncscope.linter.config import Config
from syncscope.linter.fixing import mend
from syncscope.linter.notebooks import Notebook
from syncscope.linter.source import NEWLINES, SourceFile, declared
from syncscope.model.finding import Edit, Finding, Safety
from syncscope.model.source import Span

Changes = dict[str, list[lsp.TextEdit]]


@dataclass(frozen=True, slots=True)
class Part:
    """A file, or a cell: its URI, its text, and where that begins in `SourceFile.code`."""

    uri: str
    text: bytes
    start: int = 0

    @property
    def lines(self) -> list[str]:
        """Its lines without their ends."""
        return self.text.decode("utf-8", "replace").split("\n")


@dataclass
class Document:
    """A file or notebook as it is in the editor. `raw` is what it would be on disk."""

    path: str
    raw: bytes
    source: SourceFile
    parts: Mapping[str, Part]
    findings: tuple[Finding, ...] = field(default=())

    def part(self, offset: int) -> Part:
        """The part in which the byte at `offset` of the code lies."""
        found = None
        for part in self.parts.values():
            if found is None or part.start <= offset:
                found = part
        assert found is not None
        return found

    def range(self, span: Span, codec: PositionCodec) -> lsp.Range:
        """A span of the code in the editor's units."""
        return within(self.part(span.start), span, codec)

    def changes(self, edits: Iterable[Edit], codec: PositionCodec) -> Changes:
        """Edits of the code as edits of the parts."""
        found: Changes = {}
        for edit in edits:
            part = self.part(edit.span.start)
            found.setdefault(part.uri, []).append(lsp.TextEdit(within(part, edit.span, codec), edit.text))
        return found


def within(part: Part, span: Span, codec: PositionCodec) -> lsp.Range:
    """A span of the code in lines and units of this part."""

    def place(offset: int) -> ServerTextPosition:
        before = part.text[: offset - part.start]
        row = before.count(b"\n")
        return ServerTextPosition(row, len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")))

    return codec.range_to_client_units(part.lines, ServerTextRange(place(span.start), place(span.end)))


def of_text(uri: str, path: str, text: str) -> Document:
    """A file; where it is no text in the encoding that it declares, as the editor sends it."""
    raw = text.encode("utf-8", "replace")
    cookie = declared(raw)[0]
    try:  # the editor has decoded it: on disk it is in its own encoding
        raw = text.encode(cookie) if cookie else raw
        source = notebooks.source_of(path, raw)
    except (SyntaxError, LookupError, ValueError):
        source = SourceFile(path, raw, raw)
    return Document(path, raw, source, {uri: Part(uri, source.code)})


def of_notebook(uri: str, path: str, cells: Sequence[lsp.NotebookCell], workspace: Workspace) -> Document:
    """A notebook, as the file that it would be."""
    path = path if path.endswith(".ipynb") else f"{path}.ipynb"
    kinds = {lsp.NotebookCellKind.Code: "code", lsp.NotebookCellKind.Markup: "markdown"}
    told = []
    for cell in cells:
        document = workspace.get_text_document(cell.document)
        is_python = document.language_id in (None, "python")
        text = document.source if cell.kind is lsp.NotebookCellKind.Code and is_python else ""
        told.append({"cell_type": kinds[cell.kind], "source": text})
    raw = json.dumps({"cells": told, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
    source = Notebook.of(path, raw)
    parts = {cells[c.number - 1].document: Part(cells[c.number - 1].document, c.text, c.start) for c in source.cells}
    return Document(path, raw, source, parts)


def fixed(document: Document, settings: Config, codec: PositionCodec) -> Changes:
    """What all safe fixes together change, line by line."""

    def check(source: SourceFile) -> tuple[Finding, ...]:
        return engine.check_source(source, settings).findings

    mended = notebooks.source_of(document.path, mend(document.path, document.raw, check, {Safety.SAFE}).raw)
    new = mended.texts().values()
    changes: Changes = {}
    for part, text in zip(document.parts.values(), new, strict=True):
        before, after = part.text.splitlines(keepends=True), text.splitlines(keepends=True)
        starts = list(accumulate(map(len, before), initial=part.start))
        for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if tag != "equal":
                rows = NEWLINES.sub(document.source.newline, b"".join(after[j1:j2]).decode())
                span = Span(starts[i1], starts[i2])
                changes.setdefault(part.uri, []).append(lsp.TextEdit(within(part, span, codec), rows))
    return changes
