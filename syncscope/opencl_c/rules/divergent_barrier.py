"""A barrier that not every item of the work-group reaches, or not equally often.

What happens
------------
A barrier waits for all items of the group. Where an item has returned before it, or takes another branch, the standard says
nothing of what follows: devices hang, go on with half of the local memory written, or do what was meant, until the compiler or
the size of the group changes.

What to do
----------
Let every item come to the barrier, and guard the work around it: `if (i < n) part[l] = x[i]; barrier(...);` in place of
`if (i >= n) return;` above it. Let all items of a loop go round equally often: count by the group, and test inside.

When a fix pays
---------------
Always; it is a mistake also where it happens to work. With `reqd_work_group_size(1, 1, 1)` there is nobody to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting, seen
from syncscope.opencl_c.divergence import LEAVES, Divergence, divergence, ends
from syncscope.opencl_c.facts import KernelProgram, Routine
from syncscope.opencl_c.nodes import FENCED, arguments, callee
from syncscope.opencl_c.text import Node, part, said

SEVERITY = Severity.WARNING
FAMILY = Family.KERNEL
SEEN_AS = ()
EXAMPLES = (
    KernelExample(
        """
        __kernel void total(__global float *sums, __global const float *x, int n) {
            __local float part[64];
            int i = get_global_id(0), l = get_local_id(0);
            if (i >= n)
                return;
            part[l] = x[i];
            barrier(CLK_LOCAL_MEM_FENCE);  // !
            for (int half_of = 32; half_of > 0; half_of /= 2) {
                if (l < half_of)
                    part[l] += part[l + half_of];
                barrier(CLK_LOCAL_MEM_FENCE);  // !
            }
            if (l == 0)
                sums[get_group_id(0)] = part[0];
        }
        """,
        instead="""
        __kernel void total(__global float *sums, __global const float *x, int n) {
            __local float part[64];
            int i = get_global_id(0), l = get_local_id(0);
            part[l] = i < n ? x[i] : 0.0f;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int half_of = 32; half_of > 0; half_of /= 2) {
                if (l < half_of)
                    part[l] += part[l + half_of];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            if (l == 0)
                sums[get_group_id(0)] = part[0];
        }
        """,
        shows=Shows.WRONG,
        run="""
        x = np.ones(128, np.float32)
        sums = np.zeros(2, np.float32)
        run("total", 128, 64, sums, x, np.int32(100))
        right = sums.tolist() == [64, 36]
        """,
    ),
    KernelExample(
        """
        __kernel void halves(__global int *x) {
            __local int first[8];
            int l = get_local_id(0);
            if (l < 4) {
                first[l] = x[l];
                barrier(CLK_LOCAL_MEM_FENCE);  // !
                x[l] = first[3 - l];
            }
        }
        """
    ),
    KernelExample(
        """
        __kernel void blocks(__global int *x, int rounds) {
            __local int first[8];
            int l = get_local_id(0);
            for (int r = 0; r < rounds; r++) {
                if (get_group_id(0) == 0) {
                    first[l] = x[l];
                    barrier(CLK_LOCAL_MEM_FENCE);
                    x[l] = first[7 - l];
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        }
        """
    ),
)


def find(program: KernelProgram) -> Iterator[Sighting]:
    for routine in program.routines:
        if waits_of(program, routine) and "reqd_work_group_size(1, 1, 1)" not in routine.head.replace(",1", ", 1"):
            yield from in_routine(program, routine, divergence(program, routine))


def waits_of(program: KernelProgram, routine: Routine) -> list[Node]:
    """The barriers of a function, and the calls of those that hold one."""
    calls = program.inside(routine.body, "call_expression")
    return [c for c in calls if program.is_barrier(callee(c)) or callee(c) in program.with_barrier - {routine.name}]


def in_routine(program: KernelProgram, routine: Routine, differing: Divergence) -> Iterator[Sighting]:
    """What is wrong with the barriers of a function."""
    left = [(node, guards[0]) for node in program.inside(routine.body, *LEAVES) if (guards := differing.guards(node))]
    calls = [c for c in program.inside(routine.body, "call_expression") if callee(c) in program.leaving]
    left += [(call, call) for call in calls if any(map(differing.differs, (call, *arguments(call))))]
    for call in waits_of(program, routine):
        found = said_of(program, differing, call, left) or passed_on(program, differing, call)
        if found is not None:
            yield found


def passed_on(program: KernelProgram, differing: Divergence, call: Node) -> Sighting | None:
    """What is wrong with the barriers of a function because of what it is given here."""
    inner = program.named.get(callee(call))
    if inner is None or differing.depth:
        return None
    pairs = zip(inner.parameters, arguments(call), strict=False)
    given = frozenset(p.name for p, value in pairs if differing.differs(value) and not p.is_pointer)
    if not given or next(in_routine(program, inner, divergence(program, inner)), None) is not None:
        return None
    found = next(in_routine(program, inner, divergence(program, inner, given, depth=1)), None)
    if found is None:
        return None
    return seen(
        call, f"{program.quote(call)} differs between the items in what it is given, and there: {found.message}", 2
    )


def said_of(
    program: KernelProgram, differing: Divergence, call: Node, left: list[tuple[Node, Node]]
) -> Sighting | None:
    """What is wrong with a barrier, if anything is; `left` are the places at which only some items leave, with tests."""
    what = program.quote(call)
    for guard in differing.guards(call):
        test = program.quote(part(guard, "condition"))
        if guard.type in FENCED:
            return seen(call, f"{what} stands in a loop that items leave at different times: {test}", 2)
        return seen(call, f"{what} is reached only by the items for which {test} holds: the others never come", 3)
    for leaving, guard in left:
        test = program.quote(part(guard, "condition") or guard)
        comes_first = leaving.start_byte < call.start_byte and not excludes(leaving, call)
        if comes_first and leaving.type in ("return_statement", "call_expression"):
            return seen(call, f"{what} waits for items that have returned: {test}", 3)
        if comes_first and leaving.type == "goto_statement" and call.end_byte <= target(program, differing, leaving):
            return seen(call, f"{what} waits for items that have gone elsewhere: {test}", 3)
        loop = ends(leaving) or loop_around(leaving, call)
        if loop is None or loop.type not in FENCED or not holds(loop, call):
            continue
        if leaving.type in ("break_statement", "return_statement", "call_expression") or comes_first:
            return seen(call, f"{what} waits for items that have left the loop: {test}", 2)
    return None


def target(program: KernelProgram, differing: Divergence, leaving: Node) -> int:
    """The byte to which a `goto` goes; 0 where it is not known."""
    labels = program.inside(differing.routine.body, "labeled_statement")
    name = said(part(leaving, "label"))
    return next((label.start_byte for label in labels if said(part(label, "label")) == name), 0)


def loop_around(leaving: Node, call: Node) -> Node | None:
    """The innermost loop around a `return` that holds a barrier, too: who returns there is missing in the next round."""
    node = leaving.parent if leaving.type in ("return_statement", "call_expression") else None
    while node is not None and not (node.type in FENCED and holds(node, call)):
        node = node.parent
    return node


def excludes(one: Node, other: Node) -> bool:
    """Whether two nodes stand in the two branches of one `if`, and in no loop inside of the function."""
    node, is_apart = one, False
    while node is not None and node.type != "function_definition":
        parent = node.parent
        if parent.type == "if_statement" and node == part(parent, "consequence"):
            is_apart = is_apart or holds(part(parent, "alternative"), other)
        if parent.type in FENCED and holds(parent, other):
            return False
        node = parent
    return is_apart


def holds(outer: Node | None, inner: Node) -> bool:
    """Whether one node lies in the other."""
    return outer is not None and bool(outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte)
