"""What a program in C or C++ asks of an OpenCL driver, by the C interface or its C++ bindings."""

from __future__ import annotations

import re

from syncscope.opencl_c.host import CLOCK, LONGEST, Command, HostProgram, Verb
from syncscope.opencl_c.nodes import assigned, base
from syncscope.opencl_c.text import DEFINE, Node, part, said, uncommented, walk

VERBS = {
    "clEnqueueNDRangeKernel": Verb.LAUNCH,
    "clEnqueueTask": Verb.LAUNCH,
    "clEnqueueReadBuffer": Verb.READ,
    "clEnqueueReadImage": Verb.READ,
    "clEnqueueMapBuffer": Verb.MAP,
    "clEnqueueMapImage": Verb.MAP,
    "clEnqueueUnmapMemObject": Verb.UNMAP,
}
VERBS |= {f"e{name[3:]}": verb for name, verb in VERBS.items()}  # queue.enqueueReadBuffer(...)
VERBS |= {"clFinish": Verb.FINISH, "finish": Verb.FINISH, "clCreateBuffer": Verb.CREATE, "clCreateImage": Verb.CREATE}
LOOPS = {"for_statement", "while_statement", "do_statement", "for_range_loop"}
HOLDERS = ("init_declarator", "assignment_expression", "expression_statement", "compound_statement")
KERNELS = re.compile(rb'(\w+)\s*(?:=\s*(?:clCreateKernel|cl::Kernel)\s*)?[({]\s*[\w.>-]+\s*,\s*"(\w+)"')
KEPT = rb"(?:\bmove\(|_back\(|\bemplace\(|\binsert\(|[\w\])]\s*=|\breturn\b)\s*%s\s*[;,)]"  # it outlives the round
QUEUES = re.compile(
    rb"(\w+)\s*=\s*clCreateCommandQueue(?:WithProperties)?\s*\(([^;]*)\)\s*;|cl::CommandQueue\s+(\w+)\s*[({=]([^;]*);"
)


def of_cpp(code: bytes, root: Node) -> HostProgram:
    """The commands of a file of C or C++."""
    program = HostProgram(code)
    kernels = {found[1].decode(): found[2].decode() for found in KERNELS.finditer(code)}
    for made in QUEUES.finditer(code):
        if b"OUT_OF_ORDER" not in code:
            program.ordered.add((made[1] or made[3]).decode())
    for defined in DEFINE.finditer(code):
        program.assign(-1, defined[1].decode(), uncommented(defined[2]).decode("utf-8", "replace").strip())
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
        if kind in ("init_declarator", "assignment_expression") and node.end_byte - node.start_byte < LONGEST:
            note(program, function, node)
        command = None
        if kind == "call_expression":
            command = command_of(node, kernels) or waited(node, program)
        elif kind == "declaration" and said(part(node, "type")) == "cl::Buffer" and re.search(rb"[({]", node.text):
            name = base(part(node, "declarator"))
            if not re.search(KEPT % re.escape(name.encode()), code):
                command = Command(Verb.CREATE, "cl::Buffer", target=name, uses=names(node))
        if command is not None:
            program.commands.append(command.at(node.start_byte, node.end_byte, loops, function))
            if command.verb is Verb.UNMAP:
                program.released |= command.uses
        todo += [(child, loops, function) for child in reversed(node.named_children)]
    program.commands.sort(key=lambda command: command.start)
    return program


def note(program: HostProgram, function: int, node: Node) -> None:
    """Notes what a name is assigned: `local[0] = 64; local[1] = 4;` as `(64, 4)`, `global += 64 - global % 64` as both."""
    target, value = assigned(node)
    if value is None:
        return
    name, text = base(target), size(value)
    if target.type == "subscript_expression":
        known = program.values.get((function, name), "")
        index = re.search(r"\[\s*(\d)\s*\]$", said(target))
        if index is None or known.count(",") != int(index[1]) or not known.endswith((",)", "")):
            text = "?"
        else:
            program.values[function, name] = (known.removesuffix(")") or "(") + text + ",)"
            return
    program.assign(function, name, text)


def size(node: Node) -> str:
    """A size in the words of Python: `cl::NDRange(16, 16)` and `{16, 16}` are `(16, 16)`, `NULL` is `None`."""
    text = " ".join(said(node).split())
    if re.fullmatch(r"(?:cl::)?NullRange|NULL|nullptr|0", text):
        return "None"
    if found := re.fullmatch(r"(?:(?:cl::)?NDRange)?\s*[({](.*)[)}]", text):
        return f"({found[1]},)"
    return re.sub(r"^&|\.data\(\)$|^\(size_t\)|(?<=\d)[uUlL]+\b", "", text)


def names(node: Node) -> frozenset[str]:
    """The names in an expression."""
    return frozenset(said(n) for n in walk(node) if n.type == "identifier")


def is_changed(name: Node) -> bool:
    """Whether a name is assigned, or declared, where it stands."""
    parent = name.parent
    if parent.type == "assignment_expression":
        return bool(part(parent, "left") == name)
    return parent.type == "update_expression" or bool(re.fullmatch(r"(?!function_)\w*declarator", parent.type))


def command_of(node: Node, kernels: dict[str, str]) -> Command | None:
    """What a call asks for."""
    function = part(node, "function")
    is_method = function is not None and function.type == "field_expression"
    name = said(part(function, "field")) if is_method else said(function)
    verb, given = VERBS.get(name), part(node, "arguments")
    if launch := enqueued(name, given, kernels):
        return launch
    if verb is None or given is None or is_method != name.startswith(("enqueue", "finish")):
        return None
    nodes = [n for n in given.named_children if n.type != "comment"]
    if name == "finish" and nodes:
        return None
    queue = part(function, "argument") if is_method else nodes.pop(0) if nodes else None
    args = [said(n) for n in nodes]
    if verb is Verb.READ and not (len(args) > 1 and args[1] in ("CL_TRUE", "true", "CL_BLOCKING")):
        verb = Verb.COPY
    holder = node.parent
    while holder is not None and holder.type not in HOLDERS:
        holder = holder.parent
    target = said(assigned(holder)[0]).lstrip("* ") if holder is not None else ""
    launches = verb is Verb.LAUNCH and bool(args)
    event = args[-1].lstrip("&") if verb in (Verb.LAUNCH, Verb.COPY) and args and args[-1].startswith("&") else ""
    waits = (
        (args[-2].lstrip("&"),) if name.startswith("clEnqueue") and len(args) > 2 and args[-2].startswith("&") else ()
    )
    first = {"clEnqueueNDRangeKernel": 3, "enqueueNDRangeKernel": 2}.get(name, len(args))
    return Command(
        verb,
        name,
        queue=said(queue),
        kernel=kernels.get(args[0], args[0]) if launches else "",
        sizes=tuple(size(n) for n in nodes[first : first + 2]),
        waits=waits,
        target=target,
        event=event,
        uses=names(given),
    )


def waited(node: Node, program: HostProgram) -> Command | None:
    """The wait for an event that a command of this file gave: `clWaitForEvents(1, &event)`, `event.wait()`."""
    function, given = part(node, "function"), part(node, "arguments")
    args = [said(n).lstrip("&") for n in given.named_children] if given is not None else []
    if said(function) == "clWaitForEvents" and len(args) == 2:
        event = args[1]
    elif said(part(function, "field")) == "wait" and not args:
        event = said(part(function, "argument"))
    else:
        return None
    gave = next((c for c in reversed(program.commands) if c.event == event and c.verb is Verb.LAUNCH), None)
    return Command(Verb.FINISH, "wait", queue=gave.queue) if gave is not None else None


def enqueued(name: str, given: Node | None, kernels: dict[str, str]) -> Command | None:
    """The launch that a functor of the C++ bindings is: `add(cl::EnqueueArgs(queue, global, local), a, b)`."""
    args = given.named_children[0] if given is not None and given.named_child_count else None
    if args is None or args.type != "call_expression" or said(part(args, "function")).split("::")[-1] != "EnqueueArgs":
        return None
    nodes = [n for n in part(args, "arguments").named_children if n.type != "comment"]
    queue = said(nodes.pop(0)) if nodes and "NDRange" not in said(nodes[0]) else ""
    sizes = (*(size(n) for n in nodes[-2:]), *(["None"] if len(nodes) == 1 else []))
    return Command(Verb.LAUNCH, name, queue=queue, kernel=kernels.get(name, name), sizes=sizes, uses=names(given))
