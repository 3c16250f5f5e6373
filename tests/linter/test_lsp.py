"""`syncscope lsp`, talked to over pipes as an editor does."""

import asyncio
import sys

import pytest
from linter.conftest import MASKS, READS

pytest.importorskip("pygls")
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

FIXED = "    target.masked_fill_(target == 9, -1)"


class Editor(LanguageClient):
    """Keeps what the server publishes."""

    def __init__(self) -> None:
        super().__init__("test editor", "1")
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

        @self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.put_nowait(params)


def talk(scene) -> None:
    async def play() -> None:
        editor = Editor()
        await editor.start_io(sys.executable, "-m", "syncscope", "lsp")
        await editor.initialize_async(lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), root_uri=None))
        await scene(editor)
        await editor.shutdown_async(None)
        editor.exit(None)
        await editor.stop()

    asyncio.run(asyncio.wait_for(play(), 60))


def test_diagnostics_hover_and_code_actions(door):
    path = door.write("loss.py", MASKS)
    code = MASKS.replace("background =", "日本 = '𝄞'; background =")  # one letter of two UTF-16 units

    async def scene(editor: Editor) -> None:
        uri = path.as_uri()
        editor.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, code)))
        (found,) = (await editor.published.get()).diagnostics
        assert found.code == "nonzero"
        assert found.range.start == lsp.Position(5, len("    日本 = '𝄞'; background = ") + 1)
        place = lsp.TextDocumentIdentifier(uri)
        hover = await editor.text_document_hover_async(lsp.HoverParams(place, found.range.start))
        assert "Why it waits" in hover.contents.value
        params = lsp.CodeActionParams(place, found.range, lsp.CodeActionContext([found]))
        allow = (await editor.text_document_code_action_async(params))[-1]
        assert allow.title == "allow nonzero here"
        (edit,) = allow.edit.changes[uri]
        assert edit.new_text == "  # syncscope: allow[nonzero]"
        assert edit.range.start.line == 5

        change = lsp.TextDocumentContentChangeWholeDocument(MASKS)
        editor.text_document_did_change(
            lsp.DidChangeTextDocumentParams(lsp.VersionedTextDocumentIdentifier(2, uri), [change])
        )
        (found,) = (await editor.published.get()).diagnostics
        params = lsp.CodeActionParams(place, found.range, lsp.CodeActionContext([found]))
        fix = (await editor.text_document_code_action_async(params))[0]
        assert fix.is_preferred
        assert fix.title.endswith("(safe)")
        lines = MASKS.split("\n")
        for edit in sorted(
            fix.edit.changes[uri], key=lambda e: (e.range.start.line, e.range.start.character), reverse=True
        ):
            (a, b), (c, d) = ((p.line, p.character) for p in (edit.range.start, edit.range.end))
            lines[a : c + 1] = (lines[a][:b] + edit.new_text + lines[c][d:]).split("\n")
        assert FIXED in lines
        assert "nonzero" not in "\n".join(lines)

    talk(scene)


def test_a_file_that_is_being_typed_in_is_an_error_of_syntax_and_no_crash(door):
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
