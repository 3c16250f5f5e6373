"""`syncscope lsp`, talked to over pipes as an editor does; scenes in one window, whose files are closed behind each."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path

import pytest
from linter.conftest import LOOP, MASKS, READS

pytest.importorskip("pygls")
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

FIXED = "    target.masked_fill_(target == 9, -1)"
CLIENT = lsp.ClientCapabilities(
    workspace=lsp.WorkspaceClientCapabilities(
        did_change_watched_files=lsp.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
    )
)


class Editor(LanguageClient):
    """Keeps what the server publishes, and what it asks for."""

    def __init__(self) -> None:
        super().__init__("test editor", "1")
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.messages: asyncio.Queue[str] = asyncio.Queue()
        self.registered: asyncio.Queue[lsp.Registration] = asyncio.Queue()
        self.opened: set[str] = set()
        self.left: set[str] = set()  # of earlier scenes

        @self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: lsp.PublishDiagnosticsParams) -> None:
            if params.uri not in self.left:
                self.published.put_nowait(params)

        @self.feature(lsp.WINDOW_SHOW_MESSAGE)
        def message(params: lsp.ShowMessageParams) -> None:
            self.messages.put_nowait(params.message)

        @self.feature(lsp.CLIENT_REGISTER_CAPABILITY)
        def register(params: lsp.RegistrationParams) -> None:
            for one in params.registrations:
                self.registered.put_nowait(one)

    def text_document_did_open(self, params: lsp.DidOpenTextDocumentParams) -> None:
        self.opened.add(params.text_document.uri)
        super().text_document_did_open(params)

    def text_document_did_close(self, params: lsp.DidCloseTextDocumentParams) -> None:
        self.opened.remove(params.text_document.uri)
        super().text_document_did_close(params)

    async def play(self, scene: "Scene") -> None:
        try:
            await scene(self)
        finally:
            self.left |= self.opened
            for uri in [*self.opened]:
                self.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))

    def open(self, path: Path, code: str, version: int = 1) -> str:
        item = lsp.TextDocumentItem(path.as_uri(), "python", version, code)
        self.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return path.as_uri()

    async def shown(self, number: int) -> dict[str, list[tuple[str, int]]]:
        """Rule and line of what is published next, at this many files or cells."""
        told = [await self.published.get() for _ in range(number)]
        return {one.uri: [(str(d.code), d.range.start.line) for d in one.diagnostics] for one in told}

    async def actions(self, uri: str, where: lsp.Range, *only: str) -> list[lsp.CodeAction]:
        context = lsp.CodeActionContext([], only=list(only) or None)
        params = lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), where, context)
        return [
            one for one in await self.text_document_code_action_async(params) or [] if isinstance(one, lsp.CodeAction)
        ]


Scene = Callable[[Editor], Awaitable[None]]
EVERYWHERE = lsp.Range(lsp.Position(0, 0), lsp.Position(1000, 0))


def made(code: str, edits: Iterable[lsp.TextEdit]) -> str:
    """The code with these edits, whose characters are UTF-16 units, as an editor makes them."""

    def offset(at: lsp.Position) -> int:
        lines = code.split("\n")
        row = lines[at.line].encode("utf-16-le")[: 2 * at.character].decode("utf-16-le")
        return sum(len(line) + 1 for line in lines[: at.line]) + len(row)

    for edit in sorted(edits, key=lambda e: offset(e.range.start), reverse=True):
        first, last = offset(edit.range.start), offset(edit.range.end)
        code = code[:first] + edit.new_text + code[last:]
    return code


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Scene], None]]:
    folder = tmp_path_factory.mktemp("editor")
    own = {f"SYNCSCOPE_{name}_DIR": str(folder / name) for name in ("CACHE", "CONFIG")}
    editor = Editor()

    async def begun() -> None:
        await editor.start_io(sys.executable, "-m", "syncscope", "lsp", cwd=folder, env=os.environ | own)
        await editor.initialize_async(lsp.InitializeParams(capabilities=CLIENT, root_uri=None))
        editor.initialized(lsp.InitializedParams())

    async def ended() -> None:
        await editor.shutdown_async(None)
        editor.exit(None)
        await editor.stop()

    with asyncio.Runner() as runner:
        runner.run(asyncio.wait_for(begun(), 300))
        yield lambda scene: runner.run(asyncio.wait_for(editor.play(scene), 300))
        runner.run(asyncio.wait_for(ended(), 300))


def test_words_of_the_file_are_code_in_a_hover_and_no_link(door, talk):
    code = MASKS.replace("target == 9, as", "target == names['```![x](http://x)'], as")
    assert code != MASKS
    path = door.write("loss.py", code)

    async def scene(editor: Editor) -> None:
        uri = editor.open(path, code)
        (found,) = (await editor.published.get()).diagnostics
        place = lsp.TextDocumentIdentifier(uri)
        told = (await editor.text_document_hover_async(lsp.HoverParams(place, found.range.start))).contents.value
        outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", told)
        assert "http://x" in told
        assert "http://x" not in outside
        assert "Why it waits" in outside

    talk(scene)


def test_diagnostics_hover_and_code_actions(door, talk):
    path = door.write("loss.py", MASKS)
    code = MASKS.replace("background =", "日本 = '𝄞'; background =")  # one letter of two UTF-16 units

    async def scene(editor: Editor) -> None:
        uri = path.as_uri()
        editor.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, code)))
        (found,) = (await editor.published.get()).diagnostics
        assert found.code == "nonzero"
        assert found.code_description.href.endswith(("/rules/nonzero.py", "/rules.md#nonzero"))
        assert found.range.start == lsp.Position(5, len("    日本 = '𝄞'; background = ") + 1)
        place = lsp.TextDocumentIdentifier(uri)
        hover = await editor.text_document_hover_async(lsp.HoverParams(place, found.range.start))
        assert "Why it waits" in hover.contents.value
        params = lsp.CodeActionParams(place, found.range, lsp.CodeActionContext([found]))
        allow = (await editor.text_document_code_action_async(params))[-1]
        assert allow.title == "allow nonzero here"
        assert not allow.is_preferred, "an editor that fixes by itself takes what is preferred"
        (edit,) = allow.edit.changes[uri]
        assert edit.new_text == "  # syncscope: allow[nonzero]"
        assert edit.range.start.line == 5

        change = lsp.TextDocumentContentChangeWholeDocument(MASKS)
        editor.text_document_did_change(
            lsp.DidChangeTextDocumentParams(lsp.VersionedTextDocumentIdentifier(2, uri), [change])
        )
        (found,) = (await editor.published.get()).diagnostics
        params = lsp.CodeActionParams(place, found.range, lsp.CodeActionContext([found]))
        fix, *others = await editor.text_document_code_action_async(params)
        assert fix.is_preferred
        assert not any(other.is_preferred for other in others)
        assert fix.title.endswith("(safe)")
        code_now = made(MASKS, fix.edit.changes[uri])
        assert FIXED in code_now.split("\n")
        assert "nonzero" not in code_now

    talk(scene)


def test_a_file_that_is_being_typed_in_is_an_error_of_syntax_and_no_crash(door, talk):
    path = door.write("train.py", READS)

    async def scene(editor: Editor) -> None:
        uri = path.as_uri()
        item = lsp.TextDocumentItem(uri, "python", 1, READS + "        print(")
        editor.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        (found,) = (await editor.published.get()).diagnostics
        assert (found.code, found.severity) == ("syntax-error", lsp.DiagnosticSeverity.Error)
        editor.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
        assert not (await editor.published.get()).diagnostics

    talk(scene)


TWO = """\
import torch


def loss(scores):
    names = "🎲🎲"; target = torch.zeros(8, 8, device="cuda")
    rows = torch.nonzero(target == 9, as_tuple=True)
    target[rows] = -1
    other = torch.zeros(8, device="cuda")
    more = torch.nonzero(other == 9, as_tuple=True)  # 🎲
    other[more] = -1
    return target, other"""


def test_all_safe_fixes_at_once_are_those_of_the_command(door, talk):
    path = door.write("loss.py", TWO)
    crlf = door.write("crlf.py", TWO.replace("\n", "\r\n").encode())
    door("lint", "--fix")

    async def scene(editor: Editor) -> None:
        for file, code in ((path, TWO), (crlf, TWO.replace("\n", "\r\n"))):
            uri = editor.open(file, code)
            await editor.shown(1)
            (action,) = await editor.actions(uri, EVERYWHERE, "source.fixAll")
            assert action.kind == "source.fixAll.syncscope"
            assert made(code, action.edit.changes[uri]).encode() == file.read_bytes() != code.encode()
            assert await editor.actions(uri, EVERYWHERE, "source.organizeImports") == []
            kinds = {one.kind for one in await editor.actions(uri, EVERYWHERE, "quickfix")}
            assert kinds == {lsp.CodeActionKind.QuickFix}
            assert len(await editor.actions(uri, EVERYWHERE)) == 4  # a fix of both, two comments, all at once

    talk(scene)


def notebook(uri: str, *texts: str) -> lsp.DidOpenNotebookDocumentParams:
    """Cells of code; one that begins with a # and a blank is prose."""
    kinds = [lsp.NotebookCellKind.Markup if t.startswith("# ") else lsp.NotebookCellKind.Code for t in texts]
    languages = ["markdown" if t.startswith("# ") else "python" for t in texts]
    cells = [lsp.NotebookCell(kind, f"{uri}#{n}") for n, kind in enumerate(kinds)]
    items = [lsp.TextDocumentItem(f"{uri}#{n}", languages[n], 1, t) for n, t in enumerate(texts)]
    return lsp.DidOpenNotebookDocumentParams(lsp.NotebookDocument(uri, "jupyter-notebook", 1, cells), items)


def test_a_notebook_is_one_module_and_its_cells_have_their_own_lines(door, talk):
    uri = (door.folder / "loss.ipynb").as_uri().replace("file:", "vscode-notebook:")
    head, plain = MASKS.split("\n\n\n")
    tail = plain.replace("background =", "'🎲'; background =")

    async def scene(editor: Editor) -> None:
        editor.notebook_document_did_open(notebook(uri, "# prose", f"%matplotlib inline\n{head}", tail, plain))
        shown = await editor.shown(3)
        assert shown == {f"{uri}#1": [], f"{uri}#2": [("nonzero", 2)], f"{uri}#3": [("nonzero", 2)]}
        cell = lsp.TextDocumentIdentifier(f"{uri}#2")
        column = len("    '🎲'; background = ") + 1
        hover = await editor.text_document_hover_async(lsp.HoverParams(cell, lsp.Position(2, column)))
        assert "Why it waits" in hover.contents.value
        assert await editor.text_document_hover_async(lsp.HoverParams(cell, lsp.Position(2, 1))) is None
        assert await editor.actions(f"{uri}#1", EVERYWHERE, "quickfix") == []
        (action,) = await editor.actions(f"{uri}#1", EVERYWHERE, "notebook.source.fixAll")
        assert list(action.edit.changes) == [f"{uri}#3"]
        assert FIXED in made(plain, action.edit.changes[f"{uri}#3"]).split("\n")

        new = lsp.TextDocumentItem(f"{uri}#4", "python", 1, "print(loss(1).sum().item())")
        change = lsp.NotebookDocumentCellChangeStructure(
            lsp.NotebookCellArrayChange(4, 0, [lsp.NotebookCell(lsp.NotebookCellKind.Code, f"{uri}#4")]), [new]
        )
        where = lsp.Range(lsp.Position(2, 4), lsp.Position(2, len("    '🎲'; ") + 1))
        typed = lsp.TextDocumentContentChangePartial(where, "")
        text = lsp.NotebookDocumentCellContentChanges(lsp.VersionedTextDocumentIdentifier(2, f"{uri}#2"), [typed])
        cells = lsp.NotebookDocumentCellChanges(structure=change, text_content=[text])
        editor.notebook_document_did_change(
            lsp.DidChangeNotebookDocumentParams(
                lsp.VersionedNotebookDocumentIdentifier(2, uri), lsp.NotebookDocumentChangeEvent(cells=cells)
            )
        )
        shown = await editor.shown(4)
        assert sorted(shown) == [f"{uri}#{n}" for n in (1, 2, 3, 4)]
        (action,) = await editor.actions(f"{uri}#2", EVERYWHERE, "notebook.source.fixAll")
        assert FIXED in made(plain, action.edit.changes[f"{uri}#2"]).split("\n")
        closing = [lsp.TextDocumentIdentifier(f"{uri}#{n}") for n in (1, 2, 3, 4)]
        editor.notebook_document_did_close(
            lsp.DidCloseNotebookDocumentParams(lsp.NotebookDocumentIdentifier(uri), closing)
        )
        assert await editor.shown(4) == {f"{uri}#{n}": [] for n in (1, 2, 3, 4)}

    talk(scene)


def test_a_configuration_that_changes_counts_for_all_that_is_open(door, talk):
    paths = [door.write(f"pkg/train{n}.py", READS) for n in range(20)]
    table = door.folder / "pkg" / "pyproject.toml"

    async def scene(editor: Editor) -> None:
        watched = (await editor.registered.get()).register_options
        assert "**/pyproject.toml" in [one["globPattern"] for one in watched["watchers"]]
        uris = [editor.open(path, READS) for path in paths]
        assert await editor.shown(20) == {uri: [("host-read", 10)] for uri in uris}

        async def written(text: str) -> dict[str, list[tuple[str, int]]]:
            table.write_text(text)
            event = lsp.FileEvent(table.as_uri(), lsp.FileChangeType.Changed)
            editor.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([event]))
            return await editor.shown(20)

        assert await written('[tool.syncscope.lint]\nignore = ["host-read"]\n') == {uri: [] for uri in uris}
        assert await written("[tool.syncscope.lint]\nignroe = []\n") == {uri: [] for uri in uris}
        message = await editor.messages.get()
        assert "pyproject.toml:2: unknown key 'ignroe'" in message
        assert "did you mean 'ignore'?" in message
        excluding = await written('[tool.syncscope.lint]\nexclude = ["train1.py"]\n')
        assert [uri for uri, found in excluding.items() if not found] == [paths[1].as_uri()]

    talk(scene)


def test_a_buffer_that_was_never_saved_and_a_file_in_an_encoding_of_its_own(door, talk):
    latin = "# -*- coding: latin-1 -*-\n" + READS.replace("print(", "print('größe', ")

    async def scene(editor: Editor) -> None:
        item = lsp.TextDocumentItem("untitled:Untitled-1", "python", 1, READS)
        editor.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        assert await editor.shown(1) == {"untitled:Untitled-1": [("host-read", 10)]}
        uri = editor.open(door.write("latin.py", latin.encode("latin-1")), latin)
        (found,) = (await editor.published.get()).diagnostics
        assert found.range.start == lsp.Position(11, len("        print('größe', "))
        (action,) = [one for one in await editor.actions(uri, found.range) if "allow" in one.title]
        assert "# syncscope: allow[host-read]" in made(latin, action.edit.changes[uri])

    talk(scene)


@pytest.mark.parametrize(
    ("methods", "code"),
    [pytest.param(("initialize", "shutdown", "exit"), 0, marks=pytest.mark.slow), (("initialize", "exit"), 1)],
)
def test_the_end_that_the_protocol_asks_for_is_none_of_our_bugs(methods, code, start):
    said = []
    for number, method in enumerate(methods):
        params = {"processId": None, "rootUri": None, "capabilities": {}} if method == "initialize" else None
        body = json.dumps(
            {"jsonrpc": "2.0", "method": method}
            | ({"params": params} if params else {})
            | ({"id": number} if method != "exit" else {})
        ).encode()
        said.append(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    command = [sys.executable, "-m", "syncscope", "lsp"]
    server = start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    server.stdin.write(b"".join(said))
    server.stdin.flush()  # and stays open, as editors leave it
    assert server.wait(300) == code
    said_back, complaints = server.communicate()
    assert complaints == b""
    assert b'"id"' in said_back


def test_a_file_of_opencl_c_has_its_findings_its_fix_and_its_comment(door, talk):
    path = door.write("add.cl", LOOP)

    async def scene(editor: Editor) -> None:
        uri = editor.open(path, LOOP)
        assert ("float-compare-and-swap", 5) in (await editor.shown(1))[uri]
        place = lsp.TextDocumentIdentifier(uri)
        told = await editor.text_document_hover_async(lsp.HoverParams(place, lsp.Position(5, 14)))
        assert "What happens" in told.contents.value
        there = lsp.Range(lsp.Position(5, 14), lsp.Position(5, 14))
        offered = {one.title: one for one in await editor.actions(uri, there)}
        (fix,) = (one for title, one in offered.items() if title.startswith("compare the bits (unsafe"))
        assert "while (as_int(old) != as_int(assumed));" in made(LOOP, fix.edit.changes[uri])
        allow = offered["allow float-compare-and-swap here"].edit.changes[uri]
        assert "assumed);  // syncscope: allow[float-compare-and-swap]\n" in made(LOOP, allow)

    talk(scene)


ALIKE = """\
import torch


def loss(x: torch.Tensor, y: torch.Tensor):
    return x[x > 0].mean(), y[y > 0].mean()


def forward(x: torch.Tensor):
    return x[x > 1].mean()
"""


def test_no_two_actions_at_a_place_are_called_alike_and_none_is_there_twice(door, talk):
    """Two of one title were two of one rule in a line, or of the lines that were chosen: nobody could tell which is which."""
    door.write("pyproject.toml", "[tool.syncscope.lint]\nall = true\n")
    path = door.write("step.py", ALIKE)

    async def scene(editor: Editor) -> None:
        uri = editor.open(path, ALIKE)
        await editor.published.get()
        one_line = lsp.Range(lsp.Position(4, 0), lsp.Position(4, 60))
        titles = [one.title for one in await editor.actions(uri, one_line)]
        assert len(set(titles)) == len(titles)
        reduced = [title for title in titles if title.startswith("reduce all")]
        assert [title.rpartition(", ")[2] for title in reduced] == ["`x[x > 0]`", "`y[y > 0]`"]
        assert titles.count("allow boolean-mask-read here") == 1, "a comment stands for all of its line"
        offered = await editor.actions(uri, EVERYWHERE, "quickfix")
        titles = [one.title for one in offered]
        assert len(set(titles)) == len(titles)
        allows = {one.title: len(one.diagnostics) for one in offered if one.title.startswith("allow")}
        assert allows == {f"allow boolean-mask-read here, line {line}": many for line, many in ((5, 2), (9, 1))}

    talk(scene)
