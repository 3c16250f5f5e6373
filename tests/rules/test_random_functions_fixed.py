"""Whole functions, made at random, before and after their fixes: names bound again, writes in between, loops, branches."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from effort import draws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rules.driver import fixed
from rules.equivalence import arguments, assert_same, last_function, run

from syncscope.model.finding import Safety

HEAD = """\
import torch
import torch.nn.functional as F


def change(box):
    for each in box:
        each.add_(1)


"""
SIGNATURE = """\
def step(x: torch.Tensor, y: torch.Tensor, t: torch.LongTensor, device):
    x, y, t = x.clone(), y.clone(), t.clone()
    m, out, seen, box, total, k, c, turns = x > 0, [], [], [], 0.0, 0, 1, 0
"""
STATEMENTS = (
    "m = {f} > {c}",
    "m = {f} > {g}",
    "m = ~m",
    "m = m & ({f} < 1)",
    "m[0] = True",
    "x = x.flatten()",
    "x, y, t = x.flatten(), y.flatten(), t.flatten()",
    "{f} = {g} + 1",
    "{f} = {g}",
    "{f} = {g}.clone()",
    "{f} = {g}.view(-1)",
    "{f}.zero_()",
    "{f}[0] = {c}",
    "i = ({f} > {c}).nonzero(as_tuple=True)",
    "i = torch.nonzero({f} < {g}, as_tuple=True)",
    "{f}[i] = {c}",
    "{f}[torch.where({f} > {c})] = 0.5",
    "{f}[m] = 0",
    "n: torch.Tensor = {f}[0] > {c}",
    "n, least = {f}[0] > {c}, 1",
    "out.append({f}[0, n] + {g}[0, n])",
    "{f}[0, n] = {g}[0, n] - {f}[0, n].cumsum(0)",
    "{f}[m] = {g}[m] * 2 - {f}[m]",
    "a = {f}[m]",
    "a = {f}[m] + {g}[m]",
    "out.append(({f}[m] > {g}[m]).any())",
    "out.append((~({f}[m] > {g}[m])).all())",
    "out.append(({f}[m] == {f}[m]).sum())",
    "out.append({f}[m].sum())",
    "out.append({f}[{f} > {c}].mean())",
    "out.append(t[t > 0].sum())",
    "out.append(len({f}.nonzero()))",
    "out.append(torch.unique(t).numel())",
    "u = torch.unique(t)",
    "out.append(len(u))",
    "n = ({f} > {c}).nonzero()",
    "out.append(n.shape[0])",
    "out.append(a.sum())",
    "out.append((a > {c}).any())",
    "lo = {f}.min().item()",
    "hi = {f}.max().item()",
    "v = {f}.mean().item()",
    "v = {f}.sum()",
    "line = f'{{v:.3f}}'",
    "out.append(v)",
    "out.append(line)",
    "out += [lo, hi]",
    "out += [{f}.min().item(), {g}.sum().item(), {g}.max().item()]",
    "total += {f}.sum().item()",
    "out.append(total)",
    "{f} = {f} + torch.zeros(1).to(device)",
    "{f} = {f} * torch.tensor(2.0, device=device)",
    "out.append(max(v, 1.0))",
    "i = None",
    "r = torch.nonzero({f} > {c}).squeeze(1)",
    "r = torch.where({f} > {g})[0]",
    "out.append({f}[r].sum())",
    "out.append(r.numel())",
    "c = max(r.size(0) // 2, 1)",
    "c = min(c, 2)",
    "b, _ = {f}.topk(c)",
    "out.append(b.sum())",
    "out.append({f}[m].max() if m.any() else 0.0)",
    "out.append(({f}[m] - 1).mean() if m.sum() > 0 else {f}.sum() * 0)",
    "out.append(a.mean() if a.numel() > 0 else 0.0)",
    "total = total + {f}.mean().item() / 2",
    "total += {f}.sum().item() * 0.5",
    "seen.append({f}.sum().item())",
    "box.append({f})",
    "box.append(v)",
    "box[:] = [v]",
    "change(box)",
    "change([v])",
    "v = torch.nn.Parameter({f}.sum())",
    "add = v.add_",
    "add(1)",
    "F.relu(v, inplace=True)",
    "F.relu({f}, True)",
    "if v.item() > 0: v.neg_(); out.append(v.item())",
    "out += [v.add_(1), v.item(), v.item()]",
    "hi = float(t.max())",
    "lo, hi = float(t.min()), float(t.max())",
    "lo, hi = float(y.min()), float(y.max())",
    "total += {f}.mean().item() * y.max()",
    "out.append(sorted(locals()))",
    "v = {f}.max().item()",
    "w = {f}.mean().item()",
    "out += [v, w]",
    "out.append(({f} > {c}).flatten().nonzero()[0])",
    "out.append(f'{{v}} {{w:.2f}}')",
    "m = ({f} > {c}) * ({g} < 1)",
    "m = ({f} > {c}) + ({g} > 1)",
    "same = m",
    "same &= {f} < 1",
    "m[:1].logical_not_()",
    "part = {f}.view(-1)[:1]",
    "part += 1",
    "part = m.view(-1)[1:]",
    "part.zero_()",
    "for row in m: row[:1] = False",
    "kept = [m, {f}]",
    "kept[0].zero_()",
    "later = lambda: m.logical_not_()",
    "later()",
    "counts = torch.tensor([1, 0, 3])",
    "more = counts[1:]",
    "more += 1",
    "out.append(counts.repeat_interleave(counts))",
    "try: v = {f}.mean().item(); w = {f}.min().item()\n{indent}except Exception: out.append(v)",
    "out.append(torch.linalg.inv(torch.eye(2) * {c}))",
    "{f}[{f} < {g}] = {g}[{f} < {g}]",
    "{f}[{g} <= {f}] = {g}[{g} <= {f}]",
    "if m.any(): {f}[m] = {g}[m].square()",
    "out.append(1 if torch.equal({f}, {g}) else 0)",
    "out.append(v.item())",
    "out += [w * 2, v.item(), v.item()]",
    "out.append({f}[[0, -1]] * torch.tensor([2.0], device=device))",
)
PRELUDE = (
    "i = (x > 0).nonzero(as_tuple=True)",
    "a = x",
    "v = y.sum()",
    "lo = hi = 0.0",
    "lo, hi = x.min().item(), x.max().item()",
    "line = ''",
    "r = torch.nonzero(x > 0).squeeze(1)",
    "w = x.mean().item()",
    "a = x[y > 0]",
)
BLOCKS = (
    "for k in range(2):",
    "if k % 2 == 0:",
    "if {f}.sum() > {c}:",
    "if m.any():",
    "if c > 1:",
    "if not m.any():",
    "if {f}.isnan().any():",
    "else:",
    "for x in (x, y):",
    "while total < 1 and turns < 2:",  # `turns` only grows: a program that a loop inside could hold for ever would never end
)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Statements of a function, in blocks up to two deep."""
    lines = ["    " + line for line in PRELUDE if draw(st.booleans())]
    depth, opened = 1, False
    for _ in range(draw(st.integers(3, 12))):
        if not opened and depth > 1 and draw(st.integers(0, 2)) == 0:
            depth -= 1
        names = {
            "f": draw(st.sampled_from("xy")),
            "g": draw(st.sampled_from("xy")),
            "c": draw(st.sampled_from(("0", "0.5"))),
        }
        if depth < 3 and draw(st.integers(0, 5)) == 0:
            block = draw(st.sampled_from(BLOCKS)).format(**names)
            if block == "else:":
                block = "if k:\n" + "    " * (depth + 1) + "y = y + 1\n" + "    " * depth + "else:"
            lines.append("    " * depth + block)
            depth, opened = depth + 1, True
            if block.startswith("while"):
                lines.append("    " * depth + "turns += 1")
                opened = False
        else:
            lines.append("    " * depth + draw(st.sampled_from(STATEMENTS)).format(indent="    " * depth, **names))
            opened = False
    if opened:
        lines.append("    " * depth + "pass")
    return "\n".join(lines)


def program(body: str) -> str:
    return f"{HEAD}{SIGNATURE}{body}\n    return x, y, t, out, seen, total\n"


def examine(allowed: set[Safety], inputs: str, safety: Safety, examples: int) -> None:
    @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def same(data: st.DataObject) -> None:
        written = program(data.draw(bodies()))
        after = fixed(written, allowed=allowed)
        if after == written:
            return
        values = data.draw(arguments(inputs))
        assert_same(run(last_function(written), values), run(last_function(after), values), safety)

    same()


def test_safe_fixes_change_nothing() -> None:
    examine({Safety.SAFE}, "x: float[...]; y: float[...]; t: label[...]; device: cpu", Safety.SAFE, draws(30))


def test_unsafe_fixes_change_only_what_they_say() -> None:
    inputs = "x: normal[n + 1, m + 1]; y: normal[n + 1, m + 1]; t: label[n + 1, m + 1]; device: cpu"
    examine({Safety.SAFE, Safety.UNSAFE}, inputs, Safety.UNSAFE, draws(30))
