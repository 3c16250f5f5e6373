"""What a program on the host asks of an OpenCL driver, in Python (pyopencl) and in C and C++, in the same words.

Only what stands in the file is looked at; which queue, buffer or kernel a name means is taken from what it was assigned there.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from typing import Any

from syncscope.model.source import line_starts
from syncscope.opencl_c.embedded import name_of, span
from syncscope.opencl_c.facts import KernelProgram, said
from syncscope.opencl_c.text import Node, walk


class Verb(Enum):
    """What is asked of the driver."""

    LAUNCH = "launch"
    READ = "read"  # and wait for it
    COPY = "copy"  # anything else that is enqueued
    FINISH = "finish"
    MAP = "map"
    UNMAP = "unmap"
    CREATE = "create"


@dataclass(frozen=True, slots=True)
class Command:
    """A call, at the bytes [start, end). `loops` are the loops around it, outermost first, by the byte at which they begin."""

    verb: Verb
    start: int
    end: int
    name: str  # of the function that is called
    queue: str = ""
    kernel: str = ""
    sizes: tuple[str, ...] = ()  # of a launch: global and local, as they are written
    waits: tuple[str, ...] = ()  # the events of its wait list
    target: str = ""  # what its result is called
    event: str = ""  # the event that it gives
    uses: frozenset[str] = frozenset()  # the names in its arguments
    loops: tuple[int, ...] = ()
    function: int = -1


@dataclass
class HostProgram:
    """The commands of a file, in the order of its text; `kernels` are the programs that it holds itself."""

    code: bytes
    commands: list[Command] = field(default_factory=list)
    ordered: set[str] = field(default_factory=set)  # queues that are made here, and work in order
    released: set[str] = field(default_factory=set)  # what is unmapped or released
    changed: dict[int, set[str]] = field(default_factory=dict)  # names that are assigned in a loop, by its first byte
    values: dict[str, str] = field(default_factory=dict)  # what a name is assigned
    timed: set[int] = field(default_factory=set)  # functions and loops that look at a clock, by their first byte
    kernels: list[KernelProgram] = field(default_factory=list)

    def is_timed(self, command: Command) -> bool:
        """Whether it is measured: then it waits on purpose."""
        return bool({command.function, *command.loops} & self.timed)

    def full(self, size: str) -> str:
        """A size as it is written, with what its names are assigned once in the file."""
        return re.sub(r"\b[A-Za-z_]\w*\b", lambda m: self.values.get(m[0], m[0]), size)

    def written(self, command: Command) -> str:
        """The call as the file has it, in one line."""
        text = " ".join(self.code[command.start : command.end].decode("utf-8", "replace").split())
        return f"`{text if len(text) <= 72 else text[:68] + ' ...'}`"


CLOCK = re.compile(
    r"\b(perf_counter|monotonic|timeit|time\.time|time\(\)|chrono|clock_gettime|[Tt]imer|bench|[mM]easure|[wW]arm_?up|latency|getEventProfiling|profile)"
)
C_VERBS = {
    "clEnqueueNDRangeKernel": Verb.LAUNCH,
    "clEnqueueTask": Verb.LAUNCH,
    "enqueueNDRangeKernel": Verb.LAUNCH,
    "enqueueTask": Verb.LAUNCH,
    "clFinish": Verb.FINISH,
    "finish": Verb.FINISH,
    "clEnqueueReadBuffer": Verb.READ,
    "clEnqueueReadImage": Verb.READ,
    "enqueueReadBuffer": Verb.READ,
    "enqueueReadImage": Verb.READ,
    "clEnqueueMapBuffer": Verb.MAP,
    "clEnqueueMapImage": Verb.MAP,
    "enqueueMapBuffer": Verb.MAP,
    "enqueueMapImage": Verb.MAP,
    "clEnqueueUnmapMemObject": Verb.UNMAP,
    "enqueueUnmapMemObject": Verb.UNMAP,
    "clCreateBuffer": Verb.CREATE,
    "clCreateImage": Verb.CREATE,
}
MAKERS = {"Buffer", "Image", "empty", "zeros", "to_device", "empty_like", "zeros_like", "arange"}
LOOPS = {"for_statement", "while_statement", "do_statement", "for_range_loop"}


def of_python(code: bytes, tree: ast.Module) -> HostProgram:
    """The commands of a file that imports pyopencl."""
    program = HostProgram(code)
    starts = line_starts(code)
    made: dict[str, str] = {}  # what a name was assigned from: the last part of the function's name
    modules = {"cl", "pyopencl", "cl_array", "array"}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules |= {a.asname or a.name for a in node.names if "opencl" in f"{getattr(node, 'module', '')}.{a.name}"}
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, (ast.BinOp, ast.Call, ast.Tuple))
        ):
            program.values[node.targets[0].id] = ast.unparse(node.value)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            for target in node.targets:
                made[ast.unparse(target)] = name_of(node.value.func)
                if name_of(node.value.func) == "CommandQueue" and "OUT_OF_ORDER" not in ast.unparse(node.value):
                    program.ordered.add(ast.unparse(target))

    def visit(node: ast.AST, loops: tuple[int, ...], function: int, target: str) -> None:
        here = span(node, starts)[0] if isinstance(node, (ast.stmt, ast.expr)) else 0
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            loops, function = (), here
            if CLOCK.search(code[slice(*span(node, starts))].decode("utf-8", "replace")):
                program.timed.add(here)
        elif isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            for part in (node.target, node.iter) if not isinstance(node, ast.While) else (node.test,):
                visit(part, loops, function, "")
            program.changed[here] = {
                n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
            if CLOCK.search(code[slice(*span(node, starts))].decode("utf-8", "replace")):
                program.timed.add(here)
            for inner in (*node.body, *node.orelse):
                visit(inner, (*loops, here), function, "")
            return
        elif isinstance(node, ast.Assign):
            target = ast.unparse(node.targets[0])
        elif isinstance(node, ast.Call):
            name = name_of(node.func)
            if name == "release" and isinstance(node.func, ast.Attribute):
                program.released.add(ast.unparse(node.func.value).removesuffix(".base"))
            if command := _of_call(node, made, modules):
                first, last = span(node, starts)
                uses = frozenset(
                    n.id
                    for a in (*node.args, *(k.value for k in node.keywords))
                    for n in ast.walk(a)
                    if isinstance(n, ast.Name)
                )
                event = target if command.verb in (Verb.LAUNCH, Verb.COPY) else ""
                program.commands.append(
                    replace(
                        command,
                        start=first,
                        end=last,
                        target=target,
                        event=event,
                        uses=uses,
                        loops=loops,
                        function=function,
                    )
                )
        elif isinstance(node, ast.With):
            program.released |= {ast.unparse(i.context_expr).removesuffix(".base") for i in node.items}
        for child in ast.iter_child_nodes(node):
            visit(child, loops, function, target)

    visit(tree, (), -1, "")
    program.commands.sort(key=lambda c: c.start)
    return program


def _of_call(node: ast.Call, made: dict[str, str], modules: set[str]) -> Command | None:
    """What a call of pyopencl asks for."""
    name, args = name_of(node.func), [ast.unparse(a) for a in node.args]
    owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    keywords = {k.arg: k.value for k in node.keywords if k.arg}
    listed = keywords.get("wait_for")
    waits = tuple(ast.unparse(e) for e in listed.elts) if isinstance(listed, (ast.List, ast.Tuple)) else ()
    if name == "finish" and not args and (is_queue(owner, made)):
        return Command(Verb.FINISH, 0, 0, name, owner)
    if owner in modules:
        if name == "enqueue_copy" and len(args) > 2:
            blocks = "is_blocking" not in keywords or ast.unparse(keywords["is_blocking"]) == "True"
            reads = made.get(args[2]) in MAKERS and made.get(args[1]) not in {"Buffer", "Image"}
            return Command(Verb.READ if blocks and reads else Verb.COPY, 0, 0, name, args[0], waits=waits)
        if name.startswith("enqueue_map_"):
            return Command(Verb.MAP, 0, 0, name, args[0] if args else "", waits=waits)
        if name == "enqueue_nd_range_kernel" and len(args) > 3:
            return Command(Verb.LAUNCH, 0, 0, name, args[0], args[1], tuple(args[2:4]), waits)
        if name in ("Buffer", "Image") or (name in MAKERS and "array" in owner):
            return Command(Verb.CREATE, 0, 0, name)
    if name == "get" and not node.args and made.get(owner) in MAKERS - {"Buffer", "Image", "arange"}:
        return Command(Verb.READ, 0, 0, name)
    if (
        len(args) > 2
        and is_queue(args[0], made)
        and name not in ("Program", "RawPCG")
        and not name.startswith(("enqueue", "to_", "set_"))
    ):
        kernel = name if owner else made.get(name, name)
        return Command(Verb.LAUNCH, 0, 0, name, args[0], kernel, tuple(args[1:3]), waits)
    return None


def is_queue(text: str, made: dict[str, str]) -> bool:
    """Whether this names a queue."""
    return made.get(text) == "CommandQueue" or (
        text not in made and re.search(r"(^|\.|_)(queue|cq|cmd_?queue)$", text) is not None
    )


@cache
def parser() -> Any:
    """The parser of C++; imported where there is something to parse."""
    import tree_sitter
    import tree_sitter_cpp

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def of_cpp(code: bytes, root: Node) -> HostProgram:
    """The commands of a file of C or C++."""
    program = HostProgram(code)
    kernels: dict[str, str] = {}
    for found in re.finditer(rb'(\w+)\s*(?:=\s*clCreateKernel\s*\(|\()\s*[\w.>-]+\s*,\s*"(\w+)"', code):
        kernels[found[1].decode()] = found[2].decode()
    for made in re.finditer(
        rb"(\w+)\s*=\s*clCreateCommandQueue(?:WithProperties)?\s*\(([^;]*)\)\s*;|cl::CommandQueue\s+(\w+)\s*[({=]([^;]*);",
        code,
    ):
        if b"OUT_OF_ORDER" not in (made[2] or made[4] or b"") and b"OUT_OF_ORDER" not in code:
            program.ordered.add((made[1] or made[3]).decode())
    todo: list[tuple[Node, tuple[int, ...], int]] = [(root, (), -1)]
    while todo:
        node, loops, function = todo.pop()
        kind = node.type
        if kind in ("function_definition", "lambda_expression"):
            loops, function = (), node.start_byte
        if kind in LOOPS:
            loops = (*loops, node.start_byte)
            program.changed[node.start_byte] = {said(n) for n in walk(node) if n.type == "identifier" and is_changed(n)}
        if (kind in LOOPS or kind == "function_definition") and CLOCK.search(said(node)):
            program.timed.add(node.start_byte)
        if kind == "call_expression" and (command := _of_cpp_call(node, kernels)):
            program.commands.append(replace(command, loops=loops, function=function))
            if command.verb is Verb.UNMAP:
                program.released |= command.uses
        elif kind == "declaration" and said(node.child_by_field_name("type")) == "cl::Buffer":
            names = frozenset(said(n) for n in walk(node) if n.type == "identifier")
            if b"(" in node.text or b"{" in node.text:
                program.commands.append(
                    Command(
                        Verb.CREATE,
                        node.start_byte,
                        node.end_byte,
                        "cl::Buffer",
                        uses=names,
                        loops=loops,
                        function=function,
                    )
                )
        todo += [(child, loops, function) for child in node.named_children]
    program.commands.sort(key=lambda c: c.start)
    return program


def is_changed(name: Node) -> bool:
    """Whether a name is assigned, or declared, where it stands."""
    parent = name.parent
    if parent.type == "update_expression" or (
        parent.type.endswith("declarator") and parent.type != "function_declarator"
    ):
        return True
    return bool(parent.type == "assignment_expression" and parent.child_by_field_name("left") == name)


def _of_cpp_call(node: Node, kernels: dict[str, str]) -> Command | None:
    """What a call of the C interface, or of its C++ bindings, asks for."""
    function = node.child_by_field_name("function")
    is_method = function is not None and function.type == "field_expression"
    name = said(function.child_by_field_name("field")) if is_method else said(function)
    verb = C_VERBS.get(name)
    given = node.child_by_field_name("arguments")
    args = [said(n) for n in given.named_children if n.type != "comment"] if given is not None else []
    if verb is None or (name == "finish" and (not is_method or args)):
        return None
    if is_method and not name.startswith(("enqueue", "finish")):
        return None
    queue = said(function.child_by_field_name("argument")) if is_method else args[0] if args else ""
    if not is_method:
        args = args[1:]
    uses = frozenset(said(n) for n in walk(given) if n.type == "identifier")
    if verb is Verb.READ and not (len(args) > 1 and args[1] in ("CL_TRUE", "true", "CL_BLOCKING")):
        verb = Verb.COPY
    target, holder = "", node.parent
    while holder is not None and holder.type not in (
        "init_declarator",
        "assignment_expression",
        "expression_statement",
        "compound_statement",
    ):
        holder = holder.parent
    if holder is not None and holder.type in ("init_declarator", "assignment_expression"):
        target = said(holder.child_by_field_name("declarator") or holder.child_by_field_name("left")).lstrip("* ")
    event = args[-1].lstrip("&") if verb in (Verb.LAUNCH, Verb.COPY) and args and args[-1].startswith("&") else ""
    waits: tuple[str, ...] = ()
    if name.startswith("clEnqueue") and len(args) > 2 and args[-2].startswith("&"):
        waits = (args[-2].lstrip("&"),)
    kernel = kernels.get(args[0], args[0]) if verb is Verb.LAUNCH and args else ""
    return Command(verb, node.start_byte, node.end_byte, name, queue, kernel, (), waits, target, event, uses)
