"""What a program in Python asks of an OpenCL driver, by pyopencl."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import NamedTuple

from syncscope.model.source import line_starts
from syncscope.opencl_c.embedded import name_of, span
from syncscope.opencl_c.host import CLOCK, Command, HostProgram, Verb

IMAGES = {"Buffer", "Image"}
ARRAYS = {"empty", "zeros", "to_device", "empty_like", "zeros_like"}
MAKERS = IMAGES | ARRAYS | {"arange"}
NO_KERNEL = re.compile(r"(Program|RawPCG)$|enqueue|to_|set_")  # though it is given a queue
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def of_python(code: bytes, tree: ast.Module) -> HostProgram:
    """The commands of a file that imports pyopencl."""
    seen = HostReader(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            seen.kernels |= {ast.unparse(target): node.value.attr for target in node.targets}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            named = (a.asname or a.name for a in node.names if "opencl" in f"{getattr(node, 'module', '')}.{a.name}")
            seen.modules.update(named)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            maker = name_of(node.value.func)
            targets = [ast.unparse(target) for target in node.targets]
            seen.made |= dict.fromkeys(targets, maker)
            text = node.value.args[1] if maker == "Kernel" and len(node.value.args) > 1 else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                seen.kernels |= dict.fromkeys(targets, text.value)
            if maker == "CommandQueue" and "OUT_OF_ORDER" not in ast.unparse(node.value):
                seen.program.ordered.update(targets)
    seen.visit(tree, (), -1, "")
    seen.program.commands.sort(key=lambda command: (command.start, command.end))
    return seen.program


class HostReader:
    """A file on its way to its commands."""

    def __init__(self, code: bytes) -> None:
        self.program = HostProgram(code)
        self.starts = line_starts(code)
        self.modules = {"cl", "pyopencl", "cl_array", "array"}
        # the names of kernels: `twice = program.twice`, `cl.Kernel(program, "twice")`
        self.kernels: dict[str, str] = {}
        self.events: dict[str, str] = {}  # the queue of each event
        self.made: dict[str, str] = {}  # what a name was assigned from: the last part of the function's name

    def visit(self, node: ast.AST, loops: tuple[int, ...], function: int, target: str) -> None:
        """Notes what a node asks for, and what those below it do."""
        program = self.program
        first, last = span(node, self.starts) if isinstance(node, (ast.stmt, ast.expr)) else (0, 0)
        below = list(ast.iter_child_nodes(node))
        if isinstance(node, (*FUNCTIONS, *LOOPS)) and CLOCK.search(program.code[first:last].decode("utf-8", "replace")):
            program.timed.add(first)
        if isinstance(node, FUNCTIONS):
            loops, function = (), first
        elif isinstance(node, LOOPS):
            program.changed[first] = {n.id for n in names(node) if isinstance(n.ctx, ast.Store)}
            once = [node.test] if isinstance(node, ast.While) else [node.target, node.iter]
            for each in once:
                self.visit(each, loops, function, "")
            below, loops, target = [*node.body, *node.orelse], (*loops, first), ""
        elif isinstance(node, ast.Assign):
            target = ast.unparse(node.targets[0])
            if isinstance(node.value, (ast.BinOp, ast.Call, ast.Tuple, ast.Constant)) and isinstance(
                node.targets[0], ast.Name
            ):
                program.assign(function, target, ast.unparse(node.value))
        elif isinstance(node, ast.With):
            program.released |= {ast.unparse(i.context_expr).removesuffix(".base") for i in node.items}
        elif isinstance(node, ast.Call):
            if name_of(node.func) == "release" and isinstance(node.func, ast.Attribute):
                program.released.add(ast.unparse(node.func.value).removesuffix(".base"))
            if command := self.command(node):
                uses = frozenset(n.id for a in (*node.args, *(k.value for k in node.keywords)) for n in names(a))
                event = target if command.verb in (Verb.LAUNCH, Verb.COPY) else ""
                found = replace(command, target=target, event=event, uses=uses)
                if event:
                    self.events[event] = command.queue
                program.commands.append(found.at(first, last, loops, function))
        for child in below:
            self.visit(child, loops, function, target)

    def command(self, node: ast.Call) -> Command | None:
        """What a call of pyopencl asks for."""
        call = _Call.of(node)
        if call.name == "finish" and not call.args and self.is_queue(call.owner):
            return Command(Verb.FINISH, call.name, queue=call.owner)
        if call.name == "wait" and not call.args and isinstance(node.func, ast.Attribute):
            its = self.command(node.func.value) if isinstance(node.func.value, ast.Call) else None
            queue = its.queue if its is not None and its.verb is Verb.LAUNCH else self.events.get(call.owner, "")
            return Command(Verb.FINISH, call.name, queue=queue) if queue else None
        if call.owner in self.modules and (found := self.of_module(call)):
            return found
        if call.name == "get" and not node.args and self.made.get(call.owner) in ARRAYS:
            return Command(Verb.READ, call.name)
        return self.launch(call)

    def of_module(self, call: _Call) -> Command | None:
        """What a function of pyopencl itself does."""
        name, args = call.name, call.args
        if name == "wait_for_events" and len(args) == 1 and (queue := self.events.get(args[0].strip("[](),"), "")):
            return Command(Verb.FINISH, name, queue=queue)
        if name == "enqueue_copy" and len(args) > 2:
            blocks = "is_blocking" not in call.keywords or ast.unparse(call.keywords["is_blocking"]) == "True"
            reads = self.made.get(args[2]) in MAKERS and self.made.get(args[1]) not in IMAGES
            return Command(Verb.READ if blocks and reads else Verb.COPY, name, queue=args[0], waits=call.waits)
        if name.startswith("enqueue_map_"):
            return Command(Verb.MAP, name, queue=args[0] if args else "", waits=call.waits)
        if name == "enqueue_nd_range_kernel" and len(args) > 3:
            kernel = self.kernels.get(args[1], args[1].rpartition(".")[2])
            return Command(Verb.LAUNCH, name, queue=args[0], kernel=kernel, sizes=tuple(args[2:4]), waits=call.waits)
        if name in IMAGES or (name in MAKERS and "array" in call.owner):
            return Command(Verb.CREATE, name)
        return None

    def launch(self, call: _Call) -> Command | None:
        """The launch of a kernel that is called like a function, `program.scale(queue, x.shape, None, ...)`."""
        name, owner, args = call.name, call.owner, call.args
        if len(args) < 3 or NO_KERNEL.match(name):
            return None
        is_sized = isinstance(call.node.args[1], ast.Tuple) or args[1].endswith(".shape")
        if not self.is_queue(args[0]) and not (args[0] == "q" and is_sized):
            return None
        kernel = self.kernels.get(f"{owner}.{name}" if owner else name)
        kernel = kernel or (name if owner else self.made.get(name, name))
        return Command(Verb.LAUNCH, name, queue=args[0], kernel=kernel, sizes=tuple(args[1:3]), waits=call.waits)

    def is_queue(self, text: str) -> bool:
        """Whether this names a queue."""
        maker = self.made.get(text)
        return maker == "CommandQueue" or (
            maker is None and re.search(r"(^|\.|_)(queue|cq|cmd_?queue)$", text) is not None
        )


class _Call(NamedTuple):
    """A call in words: of what, and with what."""

    node: ast.Call
    name: str
    owner: str
    args: list[str]
    keywords: dict[str, ast.expr]

    @classmethod
    def of(cls, node: ast.Call) -> _Call:
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        keywords = {k.arg: k.value for k in node.keywords if k.arg}
        return cls(node, name_of(node.func), owner, [ast.unparse(a) for a in node.args], keywords)

    @property
    def waits(self) -> tuple[str, ...]:
        """The events for which it waits."""
        listed = self.keywords.get("wait_for")
        return tuple(map(ast.unparse, listed.elts)) if isinstance(listed, (ast.List, ast.Tuple)) else ()


def names(node: ast.AST) -> list[ast.Name]:
    """The names in an expression or a statement."""
    return [n for n in ast.walk(node) if isinstance(n, ast.Name)]
