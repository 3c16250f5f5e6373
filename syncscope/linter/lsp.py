"""An editor server: findings as diagnostics, rules as hover text, fixes as code actions.

Protocol: https://microsoft.github.io/language-server-protocol/ (3.17). Lines and characters begin at 0 there, and characters
are whatever unit the editor asked for: pygls' codec knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib.metadata import version

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from syncscope.linter import config, engine, suppressions
from syncscope.linter.fixing import edited
from syncscope.linter.source import Source
from syncscope.model.finding import Edit, Finding, Safety
from syncscope.rules import sections

PAUSE = 0.3  # seconds without a keystroke before the file is linted again
SEVERITY = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}


class Server(LanguageServer):
    """What is known of the open files, by URI."""

    def __init__(self) -> None:
        super().__init__("syncscope", version("syncscope"))
        self.known: dict[str, tuple[Source, tuple[Finding, ...]]] = {}
        self.configs = config.Configs()
        self.due: dict[str, asyncio.TimerHandle] = {}

    def lint(self, uri: str) -> None:
        """Lint an open file as it is in the editor, and publish what is found."""
        document = self.workspace.get_text_document(uri)
        path = to_fs_path(uri) or uri
        raw = document.source.encode("utf-8", "replace")
        self.known[uri] = (text(path, raw), engine.check(path, raw, self.configs.of(path)).findings)
        source, findings = self.known[uri]
        diagnostics = [self.diagnostic(source, finding) for finding in findings]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics, document.version))

    def diagnostic(self, source: Source, finding: Finding) -> lsp.Diagnostic:
        """A finding as the editor shows it."""
        return lsp.Diagnostic(
            range=self.range(source, finding.span.start, finding.span.end),
            message=finding.message + (f"\n{finding.fix.title} ({finding.fix.safety.value})" if finding.fix else ""),
            severity=SEVERITY[finding.severity],
            code=finding.rule,
            source="syncscope",
        )

    def range(self, source: Source, start: int, end: int) -> lsp.Range:
        """A byte span of the code in the editor's units."""
        lines = source.code.decode().split("\n")
        (row, column), (last, stop) = source.position(start), source.position(end)
        here = lsp.Range(lsp.Position(row - 1, column - 1), lsp.Position(last - 1, stop - 1))
        return self.workspace.position_codec.range_to_client_units(lines, here)

    def at(self, uri: str, wanted: lsp.Range) -> Iterable[Finding]:
        """The findings that a range touches."""
        source, findings = self.known.get(uri, (None, ()))
        for finding in findings if source else ():
            assert source is not None
            here = self.range(source, finding.span.start, finding.span.end)
            if not (after(wanted.start, here.end) or after(here.start, wanted.end)):
                yield finding

    def action(self, uri: str, source: Source, finding: Finding, title: str, edits: Iterable[Edit]) -> lsp.CodeAction:
        """Edits as something the user can choose."""
        changes = [lsp.TextEdit(self.range(source, e.span.start, e.span.end), e.text) for e in edits]
        return lsp.CodeAction(
            title=title,
            kind=lsp.CodeActionKind.QuickFix,
            diagnostics=[self.diagnostic(source, finding)],
            edit=lsp.WorkspaceEdit(changes={uri: changes}),
            is_preferred=bool(finding.fix and finding.fix.safety is Safety.SAFE),
        )


def after(one: lsp.Position, other: lsp.Position) -> bool:
    """Whether one position lies behind another."""
    return (one.line, one.character) > (other.line, other.character)


def text(path: str, raw: bytes) -> Source:
    """The file's text; where it is no text in its own encoding, as an editor sends it."""
    try:
        return Source.of(path, raw)
    except SyntaxError:
        return Source(path, raw, raw)


def server() -> Server:
    """A server that knows the features; start it with `start_io()`."""
    serve = Server()

    @serve.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: Server, params: lsp.DidOpenTextDocumentParams) -> None:
        ls.lint(params.text_document.uri)

    @serve.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: Server, params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        if uri in ls.due:
            ls.due[uri].cancel()
        ls.due[uri] = asyncio.get_running_loop().call_later(PAUSE, ls.lint, uri)

    @serve.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(ls: Server, params: lsp.DidSaveTextDocumentParams) -> None:
        engine.project.cache_clear()  # other files may rely on this one
        config.read.cache_clear()
        ls.configs = config.Configs()
        ls.lint(params.text_document.uri)

    @serve.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: Server, params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        if uri in ls.due:
            ls.due.pop(uri).cancel()
        ls.known.pop(uri, None)
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    @serve.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(ls: Server, params: lsp.HoverParams) -> lsp.Hover | None:
        for finding in ls.at(params.text_document.uri, lsp.Range(params.position, params.position)):
            return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, told(finding, ls)))
        return None

    @serve.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])
    )
    def actions(ls: Server, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri, found = params.text_document.uri, []
        for finding in ls.at(uri, params.range):
            source = ls.known[uri][0]
            if fix := finding.fix:
                changes = f": {fix.changes}" if fix.changes else ""
                title = f"{fix.title} ({fix.safety.value}{changes})"
                found.append(ls.action(uri, source, finding, title, fix.edits))
            if finding.rule not in config.BUILT_IN:
                edits = suppressions.additions(source, {finding.place.line: [finding.rule]}, "")
                if edited(source, edits):
                    found.append(ls.action(uri, source, finding, f"allow {finding.rule} here", edits))
        return found

    return serve


def told(finding: Finding, ls: Server) -> str:
    """What hovering over a finding tells: why the host waits, how it is known, what the fix would be."""
    rules = engine.ruleset(ls.configs.of(finding.place.path).rules)
    pieces = [f"**{finding.rule}**: {finding.message}"]
    if finding.rule in rules:
        page = sections(rules[finding.rule])
        pieces += [
            page[""],
            *(f"### {head}\n{page[head]}" for head in ("Why it waits", "What to do", "Fix safety") if page.get(head)),
        ]
    if finding.why:
        pieces.append("Known because " + ", and ".join(finding.why))
    return "\n\n".join(pieces)
