"""The modules of a project and what they define: names resolved over imports, parsed once, never executed."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncscope.files import regular
from syncscope.model.fact import Emitted, Fact
from syncscope.model.heat import Role
from syncscope.model.ops import Op
from syncscope.model.source import line_starts
from syncscope.project.bindings import Bound, FunctionNode, Scopes, collect
from syncscope.project.folders import located
from syncscope.project.imports import Imports
from syncscope.project.of_file import let_go
from syncscope.project.parsed import Parsed, ParsedFiles
from syncscope.project.syntax import name_of


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What the parts of the interpreter ask of one another where asking goes in a circle; `interpret` puts one together.

    A name stands for an expression, an expression calls a function, a function runs statements, a statement sets an attribute,
    and an attribute is what a function has set. Each part imports those below it, and asks for the rest here. The tables go by
    the kind of a node; what they hold takes a frame and a node.
    """

    expressions: Mapping[type, Callable[[Any, Any], Fact]]
    statements: Mapping[type, Callable[[Any, Any], None]]
    value: Callable[[Module, ast.expr], Fact]  # what an expression at the top level of a module gives
    run: Callable[[ProjectFunction, int], Fact]  # what a function gives back, called from so deep
    call: Callable[[Any, Fact], Fact]  # what a `Call` of the value that a fact stands for gives


class ProjectFunction:
    """A function of the project: its parameters as callers use them, and what it gives back once known."""

    __slots__ = (
        "_decorators",
        "_left_out",
        "_names",
        "bound",
        "calls",
        "closure",
        "cls",
        "inner",
        "module",
        "name",
        "news",
        "node",
        "passed",
        "result",
        "running",
        "sites",
        "used",
    )

    def __init__(self, node: FunctionNode, module: Module, cls: Class | None = None, closure: object = None) -> None:
        self.node = node
        self.module = module
        self.cls = cls
        self.name = node.name
        self.closure = closure
        self.result: Fact | None = None
        self.running = False
        self.passed: dict[str, Fact] = {}  # parameter -> what the callers of this file pass
        self.news = False  # that may say more than when it was last run
        self.bound: dict[str, Fact] = {}  # what was known of its parameters then
        self.calls: dict[tuple[object, ...], Fact] = {}  # results for what the file at hand passes
        self.sites: dict[tuple[int, Op], Emitted] = {}  # where it waits, by the `id` of the node
        self.inner: list[ProjectFunction] = []
        self.used: dict[str, int] | None = None  # how its names are used, once that was asked
        self._decorators: frozenset[str] | None = None
        self._names: list[str] | None = None
        self._left_out: dict[str, str | None] | None = None
        module.defined.append(self)

    def release(self) -> None:
        """Break the circles that it is part of."""
        self.closure = self.result = None
        self.sites = {}
        self.inner.clear()
        self.passed.clear()
        self.calls.clear()
        self.bound = {}

    @property
    def names(self) -> list[str]:
        """Its parameters that may be given by position."""
        if self._names is None:
            arguments = self.node.args
            self._names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        return self._names

    @property
    def left_out(self) -> dict[str, str | None]:
        """Its parameters that are None or a text, a device's name, where a call does not name them."""
        if self._left_out is None:
            arguments = self.node.args
            named = self.names[-len(arguments.defaults) :] if arguments.defaults else []
            pairs = (
                *zip(named, arguments.defaults, strict=True),
                *zip((each.arg for each in arguments.kwonlyargs), arguments.kw_defaults, strict=True),
            )
            self._left_out = {
                name: default.value
                for name, default in pairs
                if isinstance(default, ast.Constant) and (default.value is None or default.value == "cpu")
            }
        return self._left_out

    def decorators(self) -> frozenset[str]:
        """Last words of the decorators: `torch.no_grad()` is "no_grad"."""
        if self._decorators is None:
            found = set()
            for node in self.node.decorator_list:
                target = node.func if isinstance(node, ast.Call) else node
                found.add(name_of(target))
            self._decorators = frozenset(found)
        return self._decorators


class Class:
    """A class of the project: its methods, its annotated fields, and its attributes once `__init__` was seen."""

    __slots__ = (
        "ancestry",
        "asked_by",
        "asked_early",
        "attributes",
        "bases",
        "fields",
        "instance",
        "made_on_host",
        "methods",
        "module",
        "name",
        "named",
        "node",
        "prepared",
        "registered",
        "set_names",
        "used_as",
    )

    def __init__(self, node: ast.ClassDef, module: Module) -> None:
        self.node = node
        self.module = module
        self.name = node.name
        self.methods: dict[str, ProjectFunction] = {}
        self.fields: dict[str, ast.expr] = {}  # name -> annotation
        self.named: dict[str, ast.expr] = {}  # name -> what else it is called, in its body
        self.attributes: dict[str, Fact] = {}
        self.asked_by: dict[ProjectFunction, None] = {}  # in order, for a field, before it was known what it is given
        self.asked_early: dict[str, dict[ProjectFunction, None]] = {}  # for what was not set yet, or on the host alone
        self.made_on_host: set[str] = set()  # tensors that set-up leaves there: others may send them elsewhere
        self.prepared = False
        self.registered: dict[str, ast.expr] | None = None  # buffers and parameters, whichever method makes them
        self.set_names: set[str] | None = None  # what its body and its methods give values, once that was asked
        self.bases: list[Fact] | None = None
        self.ancestry: list[Class] | None = None
        self.instance: Fact | None = None
        self.used_as: dict[str, int] | None = None
        module.defined.append(self)
        for statement in node.body:
            if isinstance(statement, FunctionNode):
                self.methods.setdefault(statement.name, ProjectFunction(statement, module, self))
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                self.fields[statement.target.id] = statement.annotation
            elif isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Name, ast.Attribute)):
                target = statement.targets[0]
                if isinstance(target, ast.Name) and len(statement.targets) == 1:
                    self.named.setdefault(target.id, statement.value)

    @property
    def text(self) -> bytes:
        """Its lines, from the one that names it."""
        source = self.module.source
        starts, end = line_starts(source), self.node.end_lineno or self.node.lineno
        return source[starts[self.node.lineno - 1] : starts[end] if end < len(starts) else len(source)]

    def release(self) -> None:
        """Break the circles that it is part of."""
        self.ancestry = self.bases = self.instance = None
        self.methods.clear()
        self.attributes.clear()
        self.asked_by.clear()
        self.asked_early.clear()


class Module:
    """A parsed file and the names at its top level."""

    __slots__ = (
        "announced",
        "asked",
        "bound",
        "defined",
        "facts",
        "functions",
        "linted",
        "package",
        "parsed",
        "path",
        "project",
        "scopes_known",
        "top",
    )

    def __init__(self, parsed: Parsed, path: str, project: ProjectFiles, linted: bool = False) -> None:
        self.parsed = parsed
        self.path = path
        self.project = project
        self.bound: Bound = {}  # what binds the names at its top level
        self.facts: dict[str, Fact] = {}
        self.announced: dict[str | tuple[ast.expr, str], Fact] = {}  # what annotations mean, and why that is a tensor
        self.asked: set[str] = set()  # names being resolved: a cycle ends here
        self.functions: list[ProjectFunction] = []  # to be looked at again
        self.top: list[ProjectFunction] = []  # in order, methods included
        self.defined: list[ProjectFunction | Class] = []
        self.linted = linted  # its waits are wanted, and what its callers pass counts
        self.package = project.imports.package_of(path)
        self.scopes_known: Scopes | None = None
        collect(self.tree.body, self.bound)

    @property
    def source(self) -> bytes:
        """Its text."""
        return self.parsed.source

    @property
    def tree(self) -> ast.Module:
        """Its tree."""
        return self.parsed.tree

    @property
    def scopes(self) -> Scopes:
        """What binds the names of all its scopes, found when it is first asked for."""
        if self.scopes_known is None:
            self.scopes_known = Scopes(self.tree, self.bound)
        return self.scopes_known

    def is_package(self) -> bool:
        """Whether it stands for a folder of modules."""
        return self.path.endswith("__init__.py")

    def release(self) -> None:
        """Let go of everything, so that memory is free at once: the garbage collector would cost as much as the analysis."""
        for each in self.defined:
            each.release()
        for names in (self.defined, self.facts, self.announced, self.bound, self.functions, self.top):
            names.clear()
        self.scopes_known = None
        del self.parsed  # functions are remembered here and there for a while, and would hold the tree


LARGEST = 90_000  # bytes of a file that is read for an import: a larger one costs more than it tells
IMPORTED, _LINTED = 4_000_000, 700_000  # bytes of source behind trees that are kept, 27 bytes of memory for each


class ProjectFiles:
    """The files of a project: resolves imports between them, and keeps what it has parsed.

    `roots` are folders that absolute imports are looked up in, as `Imports` says.
    """

    interpreter: Interpreter

    def __init__(
        self, roots: tuple[Path, ...] = (), limit: int = IMPORTED, alone: bool = False, largest: int = LARGEST
    ) -> None:
        self.alone = alone  # no imports are followed
        self.imports = Imports(roots)
        self.limit = limit
        self.largest = largest
        self.read: dict[str, str] = {}  # path -> hash of every file that an answer relied on
        self.cut: set[object] = set()  # functions that were met while they ran, or modules in which it went too deep
        self.circles = 0  # times that a name was asked for while it was being resolved
        self.last: Module | None = None  # the file that was linted last: its facts can be asked for until the next
        self.unsettled: list[ProjectFunction | Class] = []
        self.particular: set[ProjectFunction] = set()  # whose `calls` are not empty
        self._modules: dict[str, Module | None] = {}
        self._held = 0  # bytes of source behind the modules that are kept
        self._imported, self._linted = ParsedFiles(IMPORTED), ParsedFiles(_LINTED)

    def role(self, path: str, name: str, owner: str = "") -> Role:
        """When a function of a file runs, or a method of a class in it: in a step, where its project does not say."""
        return Role.STEP

    def importers(self, path: str) -> dict[str, tuple[str, ...]]:
        """The files that may say what is passed to functions of a file which do not, and would wait for tensors."""
        return {}

    def parsed(self, path: str, source: bytes, tree: ast.Module | None = None) -> Parsed:
        """A file with this content, parsed if it was not yet: it is linted by itself, and read for those that import it.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse` does.
        """
        name = located(path)
        module = self._modules.get(name)
        found = module.parsed if module is not None else self._imported.get(name) or self._linted.get(name)
        if found is None or found.source != source or (tree is not None and found.tree is not tree):
            found = Parsed(name, source, ast.parse(source, path) if tree is None else tree)
            if not self.alone:
                self._linted.put(found)
        return found

    def settle(self) -> None:
        """Forget the answers that depend on where the analysis of the last file came from."""
        for what in self.unsettled:
            if isinstance(what, ProjectFunction):
                what.result = None
                what.calls.clear()
            else:
                what.prepared = False
                what.attributes.clear()
        self.unsettled.clear()
        for function in self.particular:  # what was passed is of the file that passed it
            function.calls.clear()
        self.particular.clear()
        self.cut = set()

    def begin(self) -> None:
        """Let go of the file that was linted last, of which nobody asks now, and of all modules where they are too many."""
        let_go()
        if self.last is not None:
            self.last.release()
        if self._held > self.limit:
            self._release()

    def forget(self) -> None:
        """Let go of all that was parsed: who asks again has it parsed again."""
        self.begin()
        self.last = None
        self._release()
        self._imported, self._linted = ParsedFiles(IMPORTED), ParsedFiles(_LINTED)

    def _release(self) -> None:
        """Let go of all modules at once: what is kept of one points into others."""
        for module in self._modules.values():
            if module is not None:
                module.release()
        self._modules.clear()
        self._held = 0

    def module(self, importer: Module, name: str, level: int) -> Module | None:
        """The module that `from name import ...` means in that file, or None when it is not of this project."""
        if self.alone:
            return None
        file = self.imports.file(importer.package, name, level)
        return self.at(file) if file is not None else None

    def at(self, file: str) -> Module | None:
        """The module of a file; None where it cannot be read, is too large, or holds neither imports nor functions."""
        if file not in self._modules:
            self._modules[file] = None
            try:
                source = regular(file)
                self.read[file] = hashlib.blake2b(source, digest_size=16).hexdigest()
                if len(source) <= self.largest and any(word in source for word in (b"import", b"torch", b"def ")):
                    parsed = self.parsed(file, source)
                    self._linted.pop(parsed.path)
                    self._imported.put(parsed)
                    self._modules[file] = Module(parsed, file, self)
                    self._held += len(source)
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                pass  # an import that cannot be read tells nothing; linting that file itself says why
        elif (module := self._modules[file]) is not None:
            self._imported.get(module.parsed.path)  # it was asked for
        return self._modules[file]
