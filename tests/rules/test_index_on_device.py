"""An index that is made where it is used: when it is, and when not."""

import inspect
import textwrap

import pytest
from rules.driver import findings, fixed

from syncscope.model.finding import Safety
from syncscope.rewrites import make_index_on_device

HEAD = """
import torch

device = torch.device("cuda")

def step(x: torch.Tensor, labels: torch.LongTensor, n: int):
    x = torch.zeros(n, 4, device=device) + x
"""
CASES = {  # what follows, and what is offered
    "return x[torch.arange(n), labels]": {Safety.SAFE},
    "x[torch.eye(n, 4, dtype=torch.bool)] = 0.0": {Safety.SAFE},
    "return x[torch.eye(n, 4, dtype=torch.bool)]": {None},  # a mask is best looked through on the host
    "return x[torch.randperm(n)]": {Safety.SUGGEST},
    "rows = torch.arange(n)\n    return rows.tolist(), x[rows]": {Safety.SUGGEST},  # and read on the host: sent
    "rows = torch.arange(n)\n    x = x.exp()\n    return x[rows, labels]": {
        Safety.SUGGEST
    },  # another x than where it was made: sent
    "rows = torch.arange(n)\n    return x[rows, labels]": {Safety.SAFE},
    "return [x[torch.arange(n)] for x in (x.exp(), x)]": {Safety.SAFE},
}


@pytest.mark.parametrize("code", CASES)
def test_an_index_is_made_on_the_device_where_it_serves_for_nothing_else(code: str) -> None:
    whole = HEAD + textwrap.indent(code, "    ") if "\n" not in code else HEAD + "    " + code + "\n"
    found = [f.fix for f in findings(whole, "host-tensor-as-index")]
    assert {fix.safety if fix else None for fix in found} == CASES[code]
    for fix in found:
        made = fix is not None and any("device=x.device" in edit.text for edit in fix.edits)
        sent = fix is not None and any("rows.to(x.device, non_blocking=True)" in edit.text for edit in fix.edits)
        assert made + sent == (fix is not None)
        assert sent == ("rows.tolist()" in code or "x = x.exp()" in code)


def test_the_example_gives_the_same_where_there_is_no_gpu() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("the example then takes a tensor of the host to the GPU")
    example = make_index_on_device.EXAMPLES[0]
    given = torch.arange(12.0).view(3, 4), torch.tensor([3, 0, 2])
    results = []
    for code in (example.code, example.fixed):
        space: dict[str, object] = {}
        exec(inspect.cleandoc(code), space)
        results.append(space["forward"](*given))
    assert torch.equal(*results)


NAMED = """
import torch

def sampled(x: torch.Tensor, weights: torch.Tensor, kept: int):
    x, weights = x.cuda(), weights.cuda()
    order = {}
    {}
    return x[:, order] * weights[:, order]
"""


@pytest.mark.parametrize(
    "line", ["print(order.tolist())", "order = order.flip(0)", "kept.append(order)", "for _ in range(2): x = x[order]"]
)
def test_an_index_that_serves_for_more_stays_on_the_host(line: str) -> None:
    code = NAMED.format("torch.arange(x.shape[1])", line)
    assert "device=" not in fixed(code, "host-tensor-as-index", allowed=(Safety.SAFE, Safety.UNSAFE))


def test_an_index_of_several_tensors_is_made_once_where_they_are() -> None:
    code = NAMED.format("torch.arange(x.shape[1])", "pass")
    after = fixed(code, "host-tensor-as-index", allowed=(Safety.SAFE, Safety.UNSAFE))
    assert "order = torch.arange(x.shape[1], device=x.device)\n" in after
    assert after.count("device=") == 1


ON_ONE_PATH = """
import torch

class Loss(torch.nn.Module):
    def forward(self, x: torch.Tensor, given=None):
        n = len(x)
        if given is not None:
            kinds = given
        else:
            kinds = torch.randint(0, 4, (n,))
        y = x.exp()
        return y[INDEX, kinds].sum()
"""


def test_what_one_path_makes_on_the_host_is_sent_with_the_index_that_is_made_there_or_still_told() -> None:
    (found,) = findings(ON_ONE_PATH.replace("INDEX", "torch.arange(n)"), "host-tensor-as-index")
    assert found.fix is not None
    assert found.fix.safety is Safety.UNSAFE  # alone it would leave the wait
    mended = fixed(ON_ONE_PATH.replace("INDEX", "torch.arange(n)"), "host-tensor-as-index")
    assert "torch.arange(n, device=y.device), kinds.to(y.device, non_blocking=True)" in mended
    half = ON_ONE_PATH.replace("INDEX", "torch.arange(n, device=y.device)")
    (still,) = findings(half, "host-tensor-as-index")
    assert "`kinds` is on the host where it was made here" in still.message
    assert still.confidence >= 2
    nowhere = half.replace("torch.randint(0, 4, (n,))", "x.argmax(1)")
    assert not findings(nowhere, "host-tensor-as-index")


WRITTEN = """
import torch

class Loss(torch.nn.Module):
    def __init__(self, classes=10, margin=0.01):
        super().__init__()
        self.margin = margin

    def forward(self, similarity_to_classes: torch.Tensor, labels):
        margin_of = torch.zeros(similarity_to_classes.shape, device=similarity_to_classes.device)
        margin_of[torch.arange(0, margin_of.shape[0]), labels] = self.margin
        return (margin_of * similarity_to_classes).sum()
"""


def test_an_index_made_on_the_device_does_not_hide_that_the_number_written_there_is_copied() -> None:
    assert "number-at-positions" in {f.rule for f in findings(WRITTEN)}
    for rule in ("number-at-positions", "host-tensor-as-index"):  # one fix mends both
        assert "margin_of.scatter_(1, labels[:, None], self.margin)" in fixed(WRITTEN, rule)


def test_all_indices_of_the_host_in_a_subscript_are_sent_together() -> None:
    once = "rows, cols = torch.randperm(n), torch.randperm(n)\n    print(rows, cols)\n    return x[rows, cols]\n"
    sent = fixed(HEAD + "    " + once, allowed=set(Safety))
    assert "return x[rows.to(x.device, non_blocking=True), cols.to(x.device, non_blocking=True)]" in sent
    twice = once.replace(
        "return x[rows, cols]", "y = x.exp()\n    y[rows, cols] = x[:, 0]\n    return x[rows, cols], y"
    )
    sent = fixed(HEAD + "    " + twice, allowed=set(Safety))
    lines = [f"    {name} = {name}.to(y.device, non_blocking=True)\n" for name in ("cols", "rows")]
    assert "".join(lines) + "    y[rows, cols] = x[:, 0]\n" in sent


LOOPED = """
import torch

def visited(bs: int, size: int, batches):
    kept = torch.ones(bs, 4, device="cuda").long()
    {}rows = torch.arange(bs)
    for i in range(size):
        {}
        pre = kept[rows, pre if i else 0]
    return pre{}
"""


def test_an_index_that_is_made_before_a_loop_is_made_on_the_device_there() -> None:
    after = fixed(LOOPED.format("", "pass", ""), "host-tensor-as-index", allowed={Safety.SAFE, Safety.UNSAFE})
    assert "    rows = torch.arange(bs, device=kept.device)\n    for i" in after


def test_the_last_of_the_indices_of_a_loop_is_not_made_on_the_device_for_what_follows() -> None:
    inside = LOOPED.format("for bs in batches:\n        ", "pass", " + kept[rows, 1]")
    assert "torch.arange(bs)" in fixed(inside, "host-tensor-as-index", allowed={Safety.SAFE, Safety.UNSAFE})


@pytest.mark.parametrize(("number", "made"), [("1", "new_ones(())"), ("-0.5", "new_full((), -0.5)")])
def test_a_number_that_is_written_at_the_index_is_made_on_the_device_with_it(number: str, made: str) -> None:
    code = HEAD + f"    x[torch.arange(n), labels, 0] = {number}\n    return x\n"
    after = fixed(code, "host-tensor-as-index", allowed={Safety.SAFE})
    assert f"x[torch.arange(n, device=x.device), labels, 0] = x.{made}\n" in after


SPLIT = """
import torch

def episode(images: torch.Tensor, labels: torch.Tensor, shots: int, queries: int):
    images, labels = images.cuda(), labels.cuda()
    order = torch.randperm(shots + queries)
    support = order[:shots]
    query = order[shots:]
    return images[support], labels[support], images[query], labels[query]{}
"""


def test_what_is_sliced_into_indices_is_made_on_the_device_whole() -> None:
    after = fixed(SPLIT.format(""), "host-tensor-as-index", allowed={Safety.SUGGEST})
    assert after == SPLIT.format("").replace("shots + queries)", "shots + queries, device=images.device)")


def test_it_stays_where_a_slice_serves_for_something_else() -> None:
    told = SPLIT.format(", query.tolist()")
    assert "order = torch.randperm(shots + queries)\n" in fixed(told, "host-tensor-as-index", allowed={Safety.SUGGEST})
