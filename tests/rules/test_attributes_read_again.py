"""An attribute may be a property, which notices each time that it is read: no safe fix reads one more often."""

import ast
from collections import Counter

import pytest
from effort import some
from rules.driver import findings, fixed
from test_rules import FIXABLE, plain

from syncscope.linter.notebooks import source_of
from syncscope.model.finding import Safety
from syncscope.rules import Example, Rule

HEAD = "import torch\nfrom torch import Tensor, nn\n\n\n"
LINE = "torch.arange(3).to({})"


def tier(code: str) -> Safety | None:
    """How safe the only fix is that is offered."""
    (fix,) = (f.fix for f in findings(HEAD + code) if f.fix is not None)
    return fix.safety


def of_module(body: str, line: str = LINE.format("self.noise")) -> str:
    return (
        "class Loss(nn.Module):\n"
        "    def __init__(self, noise: Tensor, source):\n"
        "        super().__init__()\n"
        "        self.kept, self.source = noise, source\n"
        f"{body}"
        "    def forward(self):\n"
        f"        return {line}\n"
    )


@pytest.mark.parametrize(
    "returned",
    ["torch.randn(3, device='cuda')", "self.source(3)", "self.source.draw()", "next(self.source)"],
)
def test_a_property_that_may_draw_is_not_read_twice(returned: str) -> None:
    body = f"    @property\n    def noise(self) -> Tensor:\n        return {returned}\n\n"
    assert tier(of_module(body)) is Safety.UNSAFE


@pytest.mark.parametrize(
    "body",
    [
        "        self.noise = nn.Parameter(noise)\n\n",
        "        self.register_buffer('noise', noise)\n\n",
        "    noise: Tensor\n\n",
        "    @property\n    def noise(self) -> Tensor:\n        return self.kept\n\n",
        "    @property\n    def noise(self) -> Tensor:\n        return torch.relu(self.kept) + 1\n\n",
        "    @functools.cached_property\n    def noise(self) -> Tensor:\n        return torch.randn(3, device='cuda')\n\n",
        "    @property\n    def noise(self) -> Tensor:\n        if self.no:\n            raise\n        return self.kept\n\n",
    ],
)
def test_what_was_set_may_be_read_twice(body: str) -> None:
    assert tier("import functools\n" + of_module(body)) is Safety.SAFE


def test_a_property_of_another_class() -> None:
    source = (
        "class Source:\n"
        "    def __init__(self, x: Tensor):\n"
        "        self.still = x\n\n"
        "    @property\n"
        "    def spot(self) -> Tensor:\n"
        "        return torch.randn(3, device='cuda')\n\n\n"
    )
    step = "def step(source: Source):\n    return torch.arange(3).to(source.{})\n"
    assert tier(source + step.format("spot")) is Safety.UNSAFE
    assert tier(source + step.format("still")) is Safety.SAFE


def test_the_words_say_which() -> None:
    body = "    @property\n    def noise(self) -> Tensor:\n        return self.source()\n\n"
    (finding,) = findings(HEAD + of_module(body))
    assert finding.fix is not None
    assert finding.fix.changes == "`self.noise` is read more often, which a property would notice"


def test_reads_of_a_property_are_not_brought_together() -> None:
    drawn = "    @property\n    def noise(self) -> Tensor:\n        return torch.randn(3, device='cuda')\n\n"
    twice = "self.noise.sum().item() + self.noise.sum().item()"
    code = HEAD + of_module(drawn, twice)
    assert fixed(code, allowed={Safety.SAFE}) == code


def reads(code: str) -> Counter[str]:
    """How often each attribute of `given` is read."""
    every = (n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Attribute))
    return Counter(n.attr for n in every if isinstance(n.value, ast.Name) and n.value.id == "given")


class Properties(ast.NodeTransformer):
    """The tensors that a function is given as properties of one object, each of which draws."""

    def __init__(self, function: ast.FunctionDef) -> None:
        every = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
        bound = {n.id for n in every if not isinstance(n.ctx, ast.Load)}
        given = {a.arg: a.annotation for a in function.args.args if a.annotation is not None and a.arg not in bound}
        self.given = {name: ast.unparse(said) for name, said in given.items() if "Tensor" in ast.unparse(said)}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(f"given.{node.id}", mode="eval").body if node.id in self.given else node


def with_properties(code: str) -> str:
    """An example whose last function asks an object for what it was given."""
    tree = ast.parse(code)
    function = next((n for n in reversed(tree.body) if isinstance(n, ast.FunctionDef)), None)
    if function is None:
        return code
    swap = Properties(function)
    function.body = [swap.visit(statement) for statement in function.body]
    head = " @property\n def {}(self) -> {}:\n  return self.draw()"
    drawn = "\n".join(head.format(*each) for each in swap.given.items())
    given = ast.arg("given", ast.Name("Given", ast.Load()))
    function.args.args = [given, *(a for a in function.args.args if a.arg not in swap.given)]
    function.args.defaults = function.args.defaults[: len(function.args.args) - 1]
    imports = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    rest = [n for n in tree.body if n not in imports]
    made = ast.parse(f"import torch\nclass Given:\n{drawn or ' pass'}").body
    return ast.unparse(ast.fix_missing_locations(ast.Module([*imports, *made, *rest], [])))


@pytest.mark.parametrize(("name", "rule", "example"), some(FIXABLE))
def test_no_safe_fix_reads_a_property_more_often(name: str, rule: Rule, example: Example) -> None:
    code = with_properties(plain(example.code))
    for finding in findings(code):
        if finding.fix is None:
            continue
        after = source_of("example.py", code.encode()).edited(finding.fix.edits).decode()
        more = [word for word, times in reads(code).items() if reads(after)[word] > times]
        assert not more or finding.fix.safety is not Safety.SAFE, f"{more}:\n{after}"
        if finding.fix.safety is Safety.UNSAFE:
            assert all(f"`given.{word}`" in finding.fix.changes for word in more), finding.fix.changes
