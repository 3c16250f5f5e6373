"""Source to Sites: the one door of this room."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from syncscope.heat import judge
from syncscope.heat.accepted import accepted
from syncscope.heat.steps import Steps
from syncscope.model.fact import UNKNOWN, Emitted, Fact, Site
from syncscope.model.heat import Reason, Role
from syncscope.model.ops import Op
from syncscope.model.source import Place, Span, line_starts, speaks_of_torch
from syncscope.project.folders import located
from syncscope.project.importers import called
from syncscope.project.modules import IMPORTED, Class, Interpreter, Module, ProjectFiles, ProjectFunction
from syncscope.project.names import ancestry
from syncscope.tensors.called import apply
from syncscope.tensors.expressions import EXPRESSIONS
from syncscope.tensors.frame import Frame, evaluate, execute, recording
from syncscope.tensors.functions import finish, knows_more, run, used
from syncscope.tensors.instances import set_up_by
from syncscope.tensors.parameters import bind_parameters
from syncscope.tensors.passed import note
from syncscope.tensors.passed_from_other_files import Elsewhere
from syncscope.tensors.statements import STATEMENTS

_RECORDING = recording(EXPRESSIONS)
_ROUNDS = 3  # times that a function is looked at again because its callers turned out to pass tensors


def _value(module: Module, node: ast.expr) -> Fact:
    return evaluate(Frame(module, depth=1), node)


class Project(ProjectFiles):
    """The files of a project, how they are interpreted, and what its steps reach."""

    interpreter = Interpreter(EXPRESSIONS, STATEMENTS, _value, run, apply)

    def __init__(self, roots: tuple[Path, ...] = (), limit: int = IMPORTED, alone: bool = False) -> None:
        super().__init__(roots, limit, alone)
        self.steps = Steps()

    def role(self, path: str, name: str, owner: str = "") -> Role:
        """When a function of a file runs, or a method of a class in it: in a step, where its project does not say."""
        return Role.STEP if self.alone else self.steps.role(path, name, owner)

    def importers(self, path: str) -> dict[str, tuple[str, ...]]:
        """The files that may say what is passed to functions of a file which do not, and would wait for tensors."""
        return {} if self.alone else self.steps.importers(path)


def sites(source: bytes, path: str, project: Project | None = None, tree: ast.Module | None = None) -> list[Site]:
    """Every expression of a file that makes the host wait if its operand lives on a device.

    Raises:
        SyntaxError: as `ast.parse` does, also for nesting that is too deep to follow.
    """
    project = project or Project(alone=True)
    speaks = speaks_of_torch(source) or bool(project.importers(located(path)))
    if not speaks and tree is not None:
        return []
    try:
        parsed = project.parsed(path, source, tree)
    except SyntaxError as error:
        if error.filename is None:  # a null byte
            raise SyntaxError(str(error), (path, 1, 1, None)) from None
        raise
    except ValueError as error:  # a null byte, in older Pythons
        raise SyntaxError(str(error), (path, 1, 1, None)) from None
    except (RecursionError, MemoryError):
        raise SyntaxError("nested too deeply to be read", (path, 1, 1, None)) from None
    if not speaks:
        return []
    try:
        project.begin()
        project.last = Module(parsed, parsed.path, project, linted=True)
        return _sites(project.last)
    except RecursionError:
        raise SyntaxError("nested too deeply to be followed", (path, 1, 1, None)) from None


def _sites(module: Module) -> list[Site]:
    frame = Frame(module, waits={})
    frame.used = {}
    execute(frame, module.tree.body)
    module.top = frame.nested  # before they are run: who calls which is asked on the way
    finish(frame)
    _hear_others(module)
    looked: dict[ProjectFunction, int] = {}
    for function in module.functions:  # grows while it is gone through
        looked[function] = looked.get(function, 0) + 1
        if looked[function] <= _ROUNDS and function.news and knows_more(function):
            function.result = None
            held = _held(function)
            run(function)
            if _held(function) != held:
                module.functions += _methods_to_run_again(module, function)
    found: dict[tuple[int, Op], tuple[ProjectFunction | None, Emitted]] = {
        key: (None, wait) for key, wait in (frame.waits or {}).items()
    }
    for function in _all(frame.nested):
        for key, wait in function.sites.items():
            found[key] = (function, wait)
    module.project.settle()
    if not found:
        return []
    offsets = _Offsets(module)
    asked = {function: _FactsOf(module, function) for function, _ in found.values()}
    made = [_site(module, offsets, function, wait, asked[function]) for function, wait in found.values()]
    made.sort(key=lambda site: (site.span.start, site.span.end, site.op))
    return made


def _hear_others(module: Module) -> None:
    """Note what other files pass to functions of this one that do not say what they take."""
    asked = module.project.importers(module.path)
    passed = Elsewhere(_RECORDING)
    for function in module.top if asked else ():
        paths = asked.get(called(function.cls.name if function.cls is not None else "", function.name), ())
        if not (paths and judge.of_wait(None, function, module).hot):
            continue  # nobody is told of what waits there
        news = [note(function, given) for given in passed.to(function, paths)]
        if any(news):
            function.news = True
            module.functions.append(function)


def _held(function: ProjectFunction) -> tuple[dict[str, Fact], set[str]] | None:
    """What an object holds by now that this function sets up."""
    cls = function.cls if function.cls is not None and function.name in set_up_by(function.cls) else None
    return (dict(cls.attributes), set(cls.made_on_host)) if cls is not None else None


def _methods_to_run_again(module: Module, setup: ProjectFunction) -> Iterator[ProjectFunction]:
    """The methods that saw an object before it was known what it is built with, those of derived classes, too."""
    for cls in module.defined:
        if isinstance(cls, Class) and setup.cls in ancestry(cls):
            for method in cls.methods.values():
                if method.name not in set_up_by(cls) and method.result is not None:
                    method.news, method.bound = True, {}
                    yield method


def _all(functions: list[ProjectFunction]) -> Iterator[ProjectFunction]:
    for function in functions:
        yield function
        yield from _all(function.inner)


class _Offsets:
    """Byte offsets of `ast` positions: its columns count bytes of UTF-8, whatever the file's encoding."""

    def __init__(self, module: Module) -> None:
        source = module.source
        self.source = source
        self.starts = line_starts(source)
        self.bom = source.startswith(b"\xef\xbb\xbf")
        self.encoding = _encoding(source)

    def of(self, line: int, column: int) -> int:
        start = self.starts[line - 1]
        if line == 1 and self.bom:
            start += 3
        if self.encoding is None:
            return start + column
        end = self.starts[line] if line < len(self.starts) else len(self.source)
        text = self.source[start:end].decode(self.encoding, "replace")
        return start + len(text.encode()[:column].decode("utf-8", "ignore").encode(self.encoding, "replace"))


def _encoding(source: bytes) -> str | None:
    """The declared encoding when it is not UTF-8 and bytes beyond ASCII occur."""
    if source.isascii():
        return None
    declared = re.match(rb"(?:[^\n]*\n)?[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", source)
    name = declared.group(1).decode("ascii").lower() if declared else "utf-8"
    return None if name.replace("_", "-") in ("utf-8", "utf8", "u8") else name


def _site(
    module: Module, offsets: _Offsets, function: ProjectFunction | None, wait: Emitted, facts_of: _FactsOf
) -> Site:
    node = wait.node
    line = node.lineno  # type: ignore[attr-defined]  # every node a wait is about has a position
    span = Span(offsets.of(line, node.col_offset), offsets.of(node.end_lineno, node.end_col_offset))  # type: ignore[attr-defined]
    heat = judge.of_wait(wait.heat, function, module)
    if wait.op is Op.ANOMALY:
        body = module.tree.body if function is None else function.node.body
        always = any(isinstance(s, ast.Expr) and s.value is node for s in body)
        heat = judge.of_switch(heat) if always else heat
    if heat.whole:
        heat = accepted(wait, function, heat, module) or heat
    return Site(
        wait.op,
        Place(module.path, line),
        span,
        node,
        wait.operand,
        wait.fact,
        wait.confidence,
        heat,
        function.node if function is not None else None,
        facts_of,
    )


def waits_of(function: ProjectFunction) -> list[Site]:
    """Where a function of another file of the project waits: hot, but where its own code says when it does.

    Its facts are those of what is announced and seen in it, whoever calls it. A span has but a line.
    """
    module, seen = function.module, dict[int, Fact]()
    frame = Frame(module, function, waits={})
    frame.seen, frame.table, frame.used = seen, _RECORDING, used(function)
    try:
        bind_parameters(function, frame)
        execute(frame, function.node.body)
    except RecursionError:
        return []
    finally:
        module.project.settle()

    def known(node: ast.expr) -> Fact:
        return seen.get(id(node), UNKNOWN)

    found = []
    for op, node, operand, fact, confidence, said in (frame.waits or {}).values():
        line = node.lineno  # type: ignore[attr-defined]
        place, span = Place(module.path, line), Span(line, line)
        found.append(
            Site(op, place, span, node, operand, fact, confidence, said or Reason.SURE(), function.node, known)
        )
    return found


class _FactsOf:
    """Answers for the expressions of a function, by running it once more and keeping every answer."""

    def __init__(self, module: Module, function: ProjectFunction | None) -> None:
        self.module = module
        self.function = function
        self.facts: dict[int, Fact] | None = None

    def __call__(self, node: ast.expr) -> Fact:
        if self.facts is None:
            self.facts = _facts(self.module, self.function)
        return self.facts.get(id(node), UNKNOWN)


Facts = Callable[[ast.expr], Fact]


def facts_of(project: Project) -> Callable[[ast.AST], Facts]:
    """What answers for the expressions of each function of the file that was linted last, also of those that never wait."""
    module = project.last
    if module is None:
        return lambda _: lambda _: UNKNOWN

    @cache
    def by_node() -> dict[ast.AST, ProjectFunction]:
        return {each.node: each for each in reversed([*_all(module.top)])}

    def of(scope: ast.AST) -> Facts:
        function = by_node().get(scope)
        return _FactsOf(module, function) if function is not None else lambda _: UNKNOWN

    return of


def _facts(module: Module, function: ProjectFunction | None) -> dict[int, Fact]:
    outer = function.closure if function is not None and isinstance(function.closure, Frame) else None
    frame = Frame(module, function, outer, {})
    frame.seen = {}
    frame.table = _RECORDING
    if function is None:
        execute(frame, module.tree.body)
    else:
        frame.used = used(function)
        bind_parameters(function, frame)
        execute(frame, function.node.body)
    return frame.seen


def facts(
    source: bytes, path: str, project: Project | None = None, tree: ast.Module | None = None
) -> dict[ast.AST, Fact]:
    """What is known of every expression of a file, where it stands.

    Raises:
        SyntaxError: as `sites` does.
    """
    tree = tree or ast.parse(source, path)
    project = project or Project(alone=True)
    sites(source, path, project, tree)
    module = project.last
    if module is None or module.tree is not tree:
        return {}
    known = dict(_facts(module, None))
    for function in _all(module.top):
        known.update(_facts(module, function))
    return {node: known[id(node)] for node in ast.walk(tree) if id(node) in known}
