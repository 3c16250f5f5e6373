"""Numbers that are read as one: of one device only, in the code's order, under names that say something."""

from pathlib import Path

import pytest
from rules.driver import FIXES, HEAD, config, fixed

from syncscope.linter.engine import check, check_file
from syncscope.model.finding import Safety

HOST = {
    "on another branch": "aux = torch.tensor([0.0])\n            if batch.sum() > 0:\n                aux = criterion(batch)",
    "in the other arm": "aux = criterion(batch)\n            if batch.sum() > 0:\n                aux = torch.zeros(1)",
    "in an expression": "aux = criterion(batch) if batch.sum() > 0 else torch.zeros(1)",
    "and negated": "aux = -torch.ones(1)\n            if batch.sum() > 0:\n                aux = criterion(batch)",
    "and reduced": "aux = torch.zeros(3).sum()\n            if batch.sum() > 0:\n                aux = criterion(batch)",
    "beside another": "aux, other = torch.zeros(1), 0\n            if batch.sum() > 0:\n                aux = criterion(batch)",
    "in the class": "aux = self.aux",
}
USES = {
    "stacked": "print({'aux': aux.item(), 'loss': loss.item()})",
    "noted": "log['aux'].append(aux.item())\n            log['loss'].append(loss.item())",
    "assigned": "a = aux.item()\n            b = loss.item()\n            log[a] = b",
    "collected": "kept.append(aux.item())",
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("host", HOST)
def test_what_one_path_makes_on_the_host_is_not_stacked(host: str, use: str) -> None:
    code = f"""import torch


class Trainer:
    def __init__(self):
        self.aux = torch.zeros(1)

    def train(self, loader, criterion, log: dict):
        kept = []
        for batch in loader:
            loss = criterion(batch)
            loss.backward()
            {HOST[host]}
            {USES[use]}
        return kept
"""
    assert "stack" not in (after := fixed(code)), after


@pytest.mark.parametrize("put", ["xs = [torch.zeros(1), y]", "xs = [y]\n    xs.append(torch.zeros(1))"])
def test_a_list_with_a_tensor_of_the_host_is_read_one_by_one(put: str) -> None:
    code = f"import torch\n\n\ndef f(x: torch.Tensor):\n    y = x.exp().sum()\n    {put}\n    return [t.item() for t in xs]\n"
    assert fixed(code) == code


def test_what_loops_collect_is_read_in_the_order_of_the_code() -> None:
    lists = ("zeta", "alpha", "mid")
    starts = "".join(f"    {name}s = []\n" for name in lists)
    made = "".join(f"        {name} = model(x).square().mean()\n" for name in lists)
    notes = "".join(f"        {name}s.append({name}.item())\n" for name in lists)
    loop = f"{starts}    for x in xs:\n{made}{notes}"
    code = f"import torch\n\n\ndef f(model: torch.nn.Module, xs):\n{loop}    return zetas, alphas, mids\n"
    after = fixed(code)
    places = [after.index(f"    {name}s = torch.") for name in lists]
    assert places == sorted(places), after


@pytest.mark.parametrize(
    ("taken", "names"),
    [
        ('{"epe": e.mean().item(), "1px": (e < 1).float().mean().item()}', "epe_value, e_1px_value"),
        ("dict(near=e.mean().item(), far=e.max().item() * 2)", "near_value, far_value"),
        ('{"val/near loss": e.mean().item(), "class": e.max().item()}', "near_loss_value, max_value"),
        ("[e.mean().item(), e.max().item()]", "mean_value, max_value"),
        ("float(e[0, 0].mean()) / float(e[0, k] + 1)", "mean_value, e_k_value"),
        ("e[k - 1].item() - e[k].item()", "e_k_1, e_k"),
    ],
)
def test_numbers_are_called_what_the_code_calls_them(taken: str, names: str) -> None:
    code = f"import torch\n\n\ndef f(e: torch.Tensor, k: int):\n    e = e.exp()\n    return {taken}\n"
    assert any(f"    {names} = torch.{join}" in fixed(code) for join in ("stack", "hstack"))


def test_a_tuple_of_numbers_is_read_as_one() -> None:
    code = "import torch\n\n\ndef f(e: torch.Tensor):\n    size = (e[0].item(), e[1].item())\n    return size\n"
    assert "    size = tuple(e[:2].tolist())\n" in fixed(code)


OWN = "class Nested:\n    def to(self, device{more}):\n        return self\n"
STEP = (
    "import torch\n\n\ndef train(model, loader, device):\n    for samples, targets in loader:\n"
    "        samples = samples.to(device)\n        model(samples).mean().backward()\n"
)


@pytest.mark.parametrize(
    ("where", "pinned"),
    [
        ("def train(model, loader, device):\n", False),
        ("def train(model, loader, device):\n    loader = DataLoader(loader)\n", True),
    ],
)
def test_an_upload_that_nothing_here_pins_says_that_much_of_it_still_waits(where: str, pinned: bool) -> None:
    code = STEP.replace("def train(model, loader, device):\n", where).replace(
        "import torch\n", "import torch\nfrom torch.utils.data import DataLoader\n", 1
    )
    (fix,) = [f.fix for f in check("x.py", code.encode(), config()).findings if f.fix]
    assert ("nothing here pins its memory" in fix.changes) is not pinned


@pytest.mark.parametrize(
    ("own", "moved"),
    [
        (OWN.format(more=""), False),
        (OWN.format(more=", non_blocking=False"), True),
        (OWN.format(more=", **how"), True),
        (OWN.replace("Nested:", "Net(nn.Module):").format(more=""), True),
        ("x = 1\n", True),
    ],
)
def test_a_class_of_the_project_whose_to_takes_a_device_alone(own: str, moved: bool, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "util").mkdir()
    (tmp_path / "util" / "misc.py").write_text(own)
    step = tmp_path / "engine.py"
    step.write_text(STEP)
    fixes = [f.fix.title for f in check_file(str(step), config()).findings if f.fix]
    assert fixes == ["copy while the host goes on"] * moved


@pytest.mark.parametrize(
    ("head", "after"),
    [
        (
            "from tqdm import tqdm\n\nfrom .model import Net\n",
            "import torch\nfrom tqdm import tqdm\n\nfrom .model import Net\n",
        ),
        ("import click\nfrom .model import Net\n", "import click\nimport torch\nfrom .model import Net\n"),
        ("# Licence\n# of old\n\n", "# Licence\n# of old\n\nimport torch\n\n"),
        ("import os\n\nfrom .model import Net\n", "import os\n\nimport torch\nfrom .model import Net\n"),
    ],
)
def test_torch_is_imported_where_a_formatter_would(head: str, after: str) -> None:
    body = '\n\ndef f(a: "torch.Tensor", b: "torch.Tensor"):\n    return a.mean().item(), b.mean().item()\n'
    assert fixed(head + body).startswith(after)


def test_entries_of_one_tensor_are_read_as_a_part_of_it() -> None:
    torch = pytest.importorskip("torch")
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st
    from rules.equivalence import last_function

    @hypothesis.settings(max_examples=30, database=None, deadline=None)
    @hypothesis.given(
        st.lists(st.integers(0, 5), min_size=1, max_size=4),
        st.sampled_from(["{t}.item()", "int({t})", "float({t})"]),
        st.sampled_from([torch.float32, torch.int64, torch.bool, torch.float64]),
        st.booleans(),
    )
    def agree(places: list[int], read: str, dtype: "torch.dtype", named: bool) -> None:
        values = ", ".join(read.format(t=f"y[{place}]") for place in places)
        names = ", ".join(f"n{i}" for i in range(len(places)))
        lines = f"    {names}, = {values},\n    return [{names}]\n" if named else f"    return [{values}]\n"
        code = f"import torch\n\n\ndef f(x: torch.Tensor):\n    y = x.flatten()\n{lines}"
        x = torch.tensor([[0.5, 2.0, -1.5], [3.0, 0.0, 1.0]]).to(dtype)
        after = fixed(code, allowed={Safety.SAFE, Safety.UNSAFE})
        assert repr(last_function(code)(x)) == repr(last_function(after)(x)), after

    agree()


def test_arguments_on_a_line_of_their_own_are_folded_one_a_line() -> None:
    size = f"({', '.join(['classes * labels * groups + 10000'] * 3)})"
    head = "import torch\n\n\ndef f(classes: int, labels: int, groups: int, device):\n"
    code = f"{head}    return torch.zeros(\n        {size}"
    after = fixed(f"{code}\n    ).to(device)\n")
    assert after == f"{code},\n        device=device,\n    )\n"


@pytest.mark.parametrize(
    ("read", "after"),
    [
        ("tuple(t.item() for t in ts)", "tuple(torch.hstack(tuple(ts)).flatten().tolist())"),
        ("sum((t.item() for t in ts), 1)", "sum(torch.hstack(tuple(ts)).flatten().tolist(), 1)"),
        ("[t.item() for t in ts]", "torch.hstack(tuple(ts)).flatten().tolist()"),
    ],
)
def test_losses_of_no_or_one_dimension_are_read_at_once(read: str, after: str) -> None:
    code = f"import torch\n\n\ndef f(ts: list[torch.Tensor]):\n    return {read}\n"
    changed = fixed(code, "host-read")
    assert changed == code.replace(read, after)
    torch = pytest.importorskip("torch")
    space: dict = {}
    exec(changed, space)
    read_at_once = space["f"]([torch.ones(1), torch.tensor(2.0)])
    assert read_at_once == 4.0 or [*read_at_once] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("int(x.sum().item())", "int(x.any(dim=1).sum().item())"),
        ("float(y.min().item())", "float(y.max().item())"),
        ("int(y.min().item())", "int(y.max().item())"),
    ],
)
def test_a_number_that_is_read_and_converted_is_read_from_the_tensor(low: str, high: str) -> None:
    torch = pytest.importorskip("torch")
    from rules.equivalence import last_function

    code = f"import torch\n\n\ndef f(y: torch.Tensor):\n    x = y > 0\n    a = {low}\n    b = {high}\n    return a, b\n"
    after = fixed(code)
    assert ".item()" not in after
    assert after.count("tolist") == 1
    y = torch.tensor([[0.5, -2.0], [1.5, 3.25]])
    assert repr(last_function(code)(y)) == repr(last_function(after)(y))


def test_what_a_dict_is_given_is_read_before_the_dict_changes() -> None:
    code = (
        "class Learner:\n    def update(self, obs: torch.Tensor, lr):\n        info = self.begin(obs=obs)\n"
        "        a, b = self.net(obs)\n        a, b = a.reshape([-1]), b.reshape([-1])\n"
        "        loss = torch.nn.functional.mse_loss(a, b)\n        loss.backward()\n"
        '        info.update({"loss": loss.item(), "a": a.mean().item(), "b": b.mean().item(), "lr": lr})\n'
        "        info.update(self.end(info=info, loss=loss))\n        return info\n"
    )
    after = fixed(HEAD + code, "host-read", allowed=FIXES)
    assert "loss_value, a_value, b_value = torch.stack((loss, a.mean(), b.mean())).tolist()\n" in after
    assert '"loss": loss_value, "a": a_value, "b": b_value, "lr": lr' in after
    written = code.replace('info.update({"loss"', 'self.net(a.zero_(), {"loss"')
    assert "loss_value" not in fixed(HEAD + written, "host-read", allowed=FIXES)


def test_what_one_place_could_do_without_is_read_once_where_another_needs_it() -> None:
    code = """
import torch

def train(model, loader, optimizer, bar):
    total = 0.0
    for x in loader:
        loss = model(x.cuda()).square().mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
        bar.write(f"{loss.item()}")
    return total
"""
    assert fixed(code, "host-read").count(".item()") == 1
