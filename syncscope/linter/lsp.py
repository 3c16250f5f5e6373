"""An editor server: findings as diagnostics, rules as hover text, fixes as code actions; of files and of notebooks.

Protocol: https://microsoft.github.io/language-server-protocol/ (3.17). Lines and characters begin at 0 there, and characters
are whatever unit the editor asked for: pygls' codec knows.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import version

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from syncscope.errors import UserError
from syncscope.linter import config, engine, own_rules, rulesets, trust
from syncscope.linter.files import excluded
from syncscope.linter.fixing import edited
from syncscope.linter.lsp_actions import QuickFix, told_apart
from syncscope.linter.lsp_documents import Document, fixed, of_notebook, of_text
from syncscope.model.finding import Finding, Safety
from syncscope.project.folders import located
from syncscope.rules import page_address, sections

PAUSE = 0.3  # seconds without a keystroke before the file is linted again
FIX_ALL = f"{lsp.CodeActionKind.SourceFixAll.value}.syncscope"
FIX_NOTEBOOK = f"notebook.{FIX_ALL}"
SEVERITY = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
PYTHON_CELLS = lsp.NotebookDocumentSyncOptions(
    notebook_selector=[lsp.NotebookDocumentFilterWithCells(cells=[lsp.NotebookCellLanguage(language="python")])],
    save=True,
)


class Server(LanguageServer):
    """What is known of the open files and notebooks, by URI."""

    def __init__(self) -> None:
        super().__init__("syncscope", version("syncscope"), notebook_document_sync=PYTHON_CELLS)
        self.known: dict[str, Document] = {}
        self.configs = config.Configs()
        self.due: dict[str, asyncio.TimerHandle] = {}
        self.told: set[str] = set()  # which rules were not loaded: said once
        self.closing = False  # the editor has said `shutdown`
        self.code = 0  # what the process ends with

    def home(self, uri: str) -> str:
        """The URI of what is linted as one: the notebook of a cell, else the file itself."""
        notebook = self.workspace.get_notebook_document(cell_uri=uri)
        return notebook.uri if notebook else uri

    def lint(self, uri: str) -> None:
        """Lint an open file or notebook as it is in the editor, and publish what is found."""
        notebook = self.workspace.get_notebook_document(notebook_uri=uri)
        path = to_fs_path(uri) or uri
        if notebook is None:
            document = of_text(uri, path, self.workspace.get_text_document(uri).source)
        else:
            document = of_notebook(uri, path, notebook.cells, self.workspace)
        document.findings = self.findings(document)
        self.known[uri] = document
        by_part: dict[str, list[lsp.Diagnostic]] = {part: [] for part in document.parts}
        for finding in document.findings:
            by_part[document.part(finding.span.start).uri].append(self.diagnostic(document, finding))
        for part, diagnostics in by_part.items():
            self.publish(part, diagnostics)

    def findings(self, document: Document) -> tuple[Finding, ...]:
        """What the linter says of it; a configuration that cannot be read is told to the user, and nothing else is said."""
        try:
            settings = self.configs.of(document.path)
            for line in trust.refused(settings.refused):
                self.tell(line, lsp.MessageType.Warning)
            if settings.root and excluded(located(document.path), False, settings):
                return ()
            checked = engine.check(document.path, document.raw, settings)
            for line in own_rules.told([checked.failed]):
                self.tell(line, lsp.MessageType.Error)
            return checked.findings
        except UserError as error:
            told = lsp.ShowMessageParams(lsp.MessageType.Error, f"syncscope: {error.message}. {error.hint}")
            self.window_show_message(told)
            return ()

    def tell(self, line: str, kind: lsp.MessageType) -> None:
        """Show a line to the user, once."""
        if line not in self.told:
            self.told.add(line)
            self.window_show_message(lsp.ShowMessageParams(kind, f"syncscope: {line}"))

    def publish(self, uri: str, diagnostics: list[lsp.Diagnostic]) -> None:
        """Show these, and no others, at a file or cell."""
        shown = self.workspace.get_text_document(uri).version
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics, shown))

    def later(self, uri: str) -> None:
        """Lint it when nobody has typed for a while."""
        if uri in self.due:
            self.due[uri].cancel()
        self.due[uri] = asyncio.get_running_loop().call_later(PAUSE, self.lint, uri)

    def close(self, uri: str, parts: Iterable[str]) -> None:
        """Forget a file or notebook, and what is shown at it."""
        if uri in self.due:
            self.due.pop(uri).cancel()
        self.known.pop(uri, None)
        for part in parts:
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(part, []))

    def again(self) -> None:
        """Forget what was read from disk, and lint all that is open: files may rely on one that has changed."""
        engine.project.cache_clear()
        config.read.cache_clear()
        rulesets.ruleset.cache_clear()  # a rule that was trusted anew has changed
        rulesets.claimants.cache_clear()
        rulesets.pages.cache_clear()
        self.configs = config.Configs()
        for uri in [*self.known]:
            self.later(uri)

    def diagnostic(self, document: Document, finding: Finding) -> lsp.Diagnostic:
        """A finding as the editor shows it."""
        return lsp.Diagnostic(
            range=document.range(finding.span, self.workspace.position_codec),
            message=finding.message + (f"\n{finding.fix.title} ({finding.fix.standing})" if finding.fix else ""),
            severity=SEVERITY[finding.severity],
            code=finding.rule,
            code_description=self.page(document, finding),
            source="syncscope",
            tags=[lsp.DiagnosticTag.Unnecessary] if finding.rule == "unused-allow" else None,
        )

    def page(self, document: Document, finding: Finding) -> lsp.CodeDescription | None:
        """Where a finding's rule explains itself."""
        rule = rulesets.pages(self.configs.of(document.path).rules).get(finding.rule)
        where = page_address(finding.rule, rule) if rule is not None else ""
        return lsp.CodeDescription(where) if where else None

    def at(self, uri: str, wanted: lsp.Range) -> Iterator[tuple[Document, Finding]]:
        """The findings that a range of a file or cell touches."""
        document = self.known.get(self.home(uri))
        for finding in document.findings if document else ():
            assert document is not None
            here = document.range(finding.span, self.workspace.position_codec)
            if document.part(finding.span.start).uri == uri and not (
                after(wanted.start, here.end) or after(here.start, wanted.end)
            ):
                yield document, finding

    def action(self, offer: QuickFix) -> lsp.CodeAction:
        """Edits as something the user can choose; what is preferred an editor may make unasked."""
        return lsp.CodeAction(
            title=offer.title,
            kind=lsp.CodeActionKind.QuickFix,
            diagnostics=[self.diagnostic(offer.document, finding) for finding in offer.findings],
            edit=lsp.WorkspaceEdit(changes=offer.document.changes(offer.edits, self.workspace.position_codec)),
            is_preferred=offer.preferred,
        )

    def fix_all(self, uri: str, kind: str) -> lsp.CodeAction | None:
        """All safe fixes of a file or notebook at once; None where there are none."""
        document = self.known.get(self.home(uri))
        if document is None or not any(f.fix and f.fix.tier is Safety.SAFE for f in document.findings):
            return None
        settings = self.configs.of(document.path)
        changes = fixed(document, settings, self.workspace.position_codec)
        edit = lsp.WorkspaceEdit(changes=changes)
        return lsp.CodeAction("fix all that is safe (syncscope)", kind=kind, edit=edit) if changes else None


def after(one: lsp.Position, other: lsp.Position) -> bool:
    """Whether one position lies behind another."""
    return (one.line, one.character) > (other.line, other.character)


def asked_for(kind: str, only: Iterable[lsp.CodeActionKind | str] | None) -> bool:
    """Whether an editor that wants these kinds of actions wants this one."""
    if only is None:
        return True
    names = [one.value if isinstance(one, lsp.CodeActionKind) else one for one in only]
    return any(kind == name or not name or kind.startswith(f"{name}.") for name in names)


def server() -> Server:
    """A server that knows the features; start it with `start_io()`."""
    serve = Server()

    @serve.feature(lsp.INITIALIZED)
    async def initialized(ls: Server, params: lsp.InitializedParams) -> None:
        workspace = ls.client_capabilities.workspace
        watched = workspace and workspace.did_change_watched_files
        if watched and watched.dynamic_registration:
            watchers = [lsp.FileSystemWatcher(pattern) for pattern in ("**/pyproject.toml", "**/*.py")]
            options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers)
            one = lsp.Registration("syncscope-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            await ls.client_register_capability_async(lsp.RegistrationParams([one]))

    @serve.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(ls: Server, params: lsp.DidChangeWatchedFilesParams) -> None:
        ls.again()

    @serve.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(ls: Server, params: lsp.DidChangeConfigurationParams) -> None:
        ls.again()

    @serve.feature(lsp.SHUTDOWN)
    def closing(ls: Server, params: None) -> None:
        ls.closing = True

    @serve.feature(lsp.EXIT)
    def left(ls: Server, params: None) -> None:
        ls.code = 0 if ls.closing else 1  # as the protocol has it; pygls ends with 0

    @serve.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: Server, params: lsp.DidOpenTextDocumentParams) -> None:
        ls.lint(params.text_document.uri)

    @serve.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: Server, params: lsp.DidChangeTextDocumentParams) -> None:
        ls.later(params.text_document.uri)

    @serve.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(ls: Server, params: lsp.DidSaveTextDocumentParams) -> None:
        ls.again()

    @serve.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: Server, params: lsp.DidCloseTextDocumentParams) -> None:
        ls.close(params.text_document.uri, [params.text_document.uri])

    @serve.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    def notebook_opened(ls: Server, params: lsp.DidOpenNotebookDocumentParams) -> None:
        ls.lint(params.notebook_document.uri)

    @serve.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def notebook_changed(ls: Server, params: lsp.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells
        for gone in (cells.structure.did_close or []) if cells and cells.structure else []:
            ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(gone.uri, []))
        ls.later(params.notebook_document.uri)

    @serve.feature(lsp.NOTEBOOK_DOCUMENT_DID_SAVE)
    def notebook_saved(ls: Server, params: lsp.DidSaveNotebookDocumentParams) -> None:
        ls.again()

    @serve.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def notebook_closed(ls: Server, params: lsp.DidCloseNotebookDocumentParams) -> None:
        ls.close(params.notebook_document.uri, [cell.uri for cell in params.cell_text_documents])

    @serve.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(ls: Server, params: lsp.HoverParams) -> lsp.Hover | None:
        here = lsp.Range(params.position, params.position)
        for _, finding in ls.at(params.text_document.uri, here):
            return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, told(finding, ls)))
        return None

    kinds = [lsp.CodeActionKind.QuickFix, FIX_ALL, FIX_NOTEBOOK]

    @serve.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=kinds))
    def actions(ls: Server, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri, only = params.text_document.uri, params.context.only
        found: list[lsp.CodeAction | None] = []
        if asked_for(lsp.CodeActionKind.QuickFix.value, only):
            offers = told_apart([*quick_fixes(ls, uri, params.range)], ls.workspace.position_codec)
            found += [ls.action(offer) for offer in offers]
        if asked_for(FIX_ALL, only):
            found.append(ls.fix_all(uri, FIX_ALL))
        elif asked_for(FIX_NOTEBOOK, only):
            found.append(ls.fix_all(uri, FIX_NOTEBOOK))
        return [action for action in found if action]

    return serve


def quick_fixes(ls: Server, uri: str, wanted: lsp.Range) -> Iterator[QuickFix]:
    """The fix of each finding there, and a comment that lets it stand."""
    for document, finding in ls.at(uri, wanted):
        for fix in (finding.fix, finding.fix.also) if finding.fix else ():
            if fix is not None:
                changes = f": {fix.words}" if fix.words else ""
                title, safe = f"{fix.title} ({fix.standing}{changes})", fix.tier is Safety.SAFE
                yield QuickFix(title, document, (finding,), tuple(fix.edits), safe and fix is finding.fix)
        if finding.rule not in config.BUILT_IN:
            edits = engine.additions(document.source, {finding.place.line: [finding.rule]}, "")
            if edited(document.source, edits):
                yield QuickFix(f"allow {finding.rule} here", document, (finding,), tuple(edits))


def told(finding: Finding, ls: Server) -> str:
    """What hovering over a finding tells: why the host waits, how it is known, what the fix would be."""
    rules = rulesets.pages(ls.configs.of(finding.place.path).rules)
    pieces = [f"**{finding.rule}**", as_code(finding.message)]
    if finding.rule in rules:
        page = sections(finding.rule, rules[finding.rule])
        pieces += [
            page[""],
            *(
                f"### {head}\n{page[head]}"
                for head in ("What happens", "Why it waits", "When a fix pays", "Fix safety")
                if page.get(head)
            ),
        ]
    if finding.why:
        pieces += ["Known because", as_code(",\nand ".join(finding.why))]
    return "\n\n".join(pieces)


def as_code(text: str) -> str:
    """Words that hold the file's own, in a fence that nothing in them closes: no link, no image."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{fence}text\n{text}\n{fence}"
