"""How fixed code is laid out: as formatters would have it, within the project's width, with its comments and imports."""

from pathlib import Path
from textwrap import dedent, indent

import pytest
from rules.driver import FIXES, HEAD, config, fixed

from syncscope.linter.engine import check_file
from syncscope.linter.fixing import mend
from syncscope.model.finding import Safety


def laid_out(folder: Path, code: str, settings: str) -> str:
    """The code after its fixes, in a project with these settings."""
    (folder / "pyproject.toml").write_text(settings)
    path = folder / "x.py"

    def found(source: object) -> object:
        path.write_bytes(source.raw)  # type: ignore[attr-defined]
        return check_file(str(path), config()).findings

    return mend(str(path), code.encode(), found, set(Safety)).raw.decode()  # type: ignore[arg-type]


BROAD = {
    "an operation": (
        """
        size = torch.tensor([height, width], device=image.device, dtype=image.dtype).view(1, 2) / 2.0 - 0.5
        return image * size
        """,
        """
        size = (
            torch.tensor([height, width], dtype=image.dtype).to(image.device, non_blocking=True).view(
                1, 2
            )
            / 2.0
            - 0.5
        )
        return image * size
        """,
    ),
    "a line whose bracket closes on another": (
        """
        rows = torch.index_select(image, 1, torch.tensor([1, height], device=image.device, dtype=torch.long))[
            :, :, 0
        ]
        return rows
        """,
        """
        rows = torch.index_select(
            image, 1, torch.tensor([1, height], dtype=torch.long).to(image.device, non_blocking=True)
        )[:, :, 0]
        return rows
        """,
    ),
    "what takes the place of a statement of many lines": (
        """
        largest = (image * other).abs().max()
        if largest > 1000.0:
            largest = torch.full_like(largest, 2.0) * torch.ones_like(largest) + largest.square().mean()
        return largest
        """,
        """
        largest = (image * other).abs().max()
        largest = torch.where(
            largest > 1000.0,
            torch.full_like(largest, 2.0) * torch.ones_like(largest) + largest.square().mean(),
            largest,
        )
        return largest
        """,
    ),
    "a choice": (
        """
        rows = image.float().flatten()
        kept = rows > 0
        least = rows[kept].min().item() if kept.any() else float(height * width * 2.0 + 1.0)
        return least
        """,
        """
        rows = image.float().flatten()
        kept = rows > 0
        least = (
            rows.masked_fill(~kept, float("inf")).min().item()
            if kept.any()
            else float(height * width * 2.0 + 1.0)
        )
        return least
        """,
    ),
    "a comprehension": (
        """
        return [torch.tensor([a, b], device=image.device).expand(3, 2) for a, b in zip(range(height), range(width))]
        """,
        """
        return [
            torch.tensor([a, b]).to(image.device, non_blocking=True).expand(3, 2)
            for a, b in zip(range(height), range(width))
        ]
        """,
    ),
    "arguments with names": (
        """
        return resize(image=image, size=torch.tensor([height, width], device=image.device, dtype=torch.long), by=2)
        """,
        """
        return resize(
            image=image,
            size=torch.tensor([height, width], dtype=torch.long).to(image.device, non_blocking=True),
            by=2,
        )
        """,
    ),
    "a condition": (
        """
        if image.size() == other.size() and height > 20 and torch.equal(image, other) and width > 20:
            return image
        return other
        """,
        """
        if (
            image.size() == other.size()
            and height > 20
            and (image is other or torch.equal(image, other))
            and width > 20
        ):
            return image
        return other
        """,
    ),
    "one operator, and a call at its end": (
        """
        size = image.square().sum().clamp(min=1.0) - torch.tensor([0.485, 0.456]).view(-1, 1).to(image)
        return size
        """,
        """
        size = image.square().sum().clamp(min=1.0) - torch.tensor([0.485, 0.456]).view(-1, 1).to(
            image, non_blocking=True
        )
        return size
        """,
    ),
    "an index that ends in a slice": (
        """
        image = torch.zeros(image.shape, device="cuda") + image
        rows = image[
            torch.arange(height)[:, None, None], torch.arange(width)[None, :, None], other, :
        ]
        return rows
        """,
        """
        image = torch.zeros(image.shape, device="cuda") + image
        rows = image[
            torch.arange(height, device=image.device)[:, None, None],
            torch.arange(width, device=image.device)[None, :, None],
            other,
            :,
        ]
        return rows
        """,
    ),
    "parts of many lines": (
        """
        low = (
            image.square().sum().add(height).mul(width) / other.abs().sum().clamp(min=1.0).sqrt().log()
        ).item()
        high = (
            image.cos().sum().add(width) / other.abs().sum().clamp(min=1.0)
        ).item()
        return low, high
        """,
        """
        low, high = torch.stack(
            (
                (
                    image.square().sum().add(height).mul(width)
                    / other.abs().sum().clamp(min=1.0).sqrt().log()
                ),
                (image.cos().sum().add(width) / other.abs().sum().clamp(min=1.0)),
            )
        ).tolist()
        return low, high
        """,
    ),
}


@pytest.mark.parametrize(("body", "after"), BROAD.values(), ids=BROAD)
def test_what_becomes_too_long_is_broken_where_formatters_would(body: str, after: str, tmp_path: Path) -> None:
    head = f"{HEAD}def f(image: torch.Tensor, other: torch.Tensor, height: int, width: int):"
    settings = "[tool.black]\nline-length = 100\n\n[tool.ruff]\nline-length = 140\n"  # both are kept
    before, wanted = (head + indent(dedent(code), "    ") for code in (body, after))
    assert laid_out(tmp_path, before, settings) == wanted


def test_a_comment_on_an_early_return_stands_before_what_takes_its_place() -> None:
    code = """
    def f(x: torch.Tensor, y: torch.Tensor):
        total = y.sum()
        if total == 0:
            # nothing to divide by
            return torch.ones_like(total)
        return x.sum() / total
    """
    after = fixed(HEAD + dedent(code), allowed=set(Safety))
    assert "    # nothing to divide by\n    early = " in after


def test_a_constant_of_many_lines_is_indented_as_its_new_function_is() -> None:
    code = """
    def f(x: torch.Tensor):
        for _ in range(3):
            corners = torch.tensor(
                [[0.0, 1.0], [1.0, 0.0]],
                device=x.device,
            )
            x = x * corners
        return x
    """
    after = fixed(HEAD + dedent(code), allowed=FIXES)
    assert "    return torch.tensor(\n        [[0.0, 1.0], [1.0, 0.0]],\n        device=device,\n    )\n" in after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from typing import Any\n\nimport torch\n", "import functools\nfrom typing import Any\n\nimport torch\n"),
        ("import abc\nimport math\n\nimport torch\n", "import abc\nimport functools\nimport math\n\nimport torch\n"),
        ("import sys\n\nimport torch\n", "import functools\nimport sys\n\nimport torch\n"),
    ],
)
def test_a_module_of_python_itself_is_imported_in_its_place(before: str, after: str) -> None:
    code = "\n\ndef f(x: torch.Tensor):\n    for _ in range(3):\n        x = x * torch.tensor([0.5, 2.0], device=x.device)\n"
    assert fixed(f"{before}{code}    return x\n", allowed=FIXES).startswith(after)


def test_a_cache_is_not_emptied_in_vain_where_somebody_says_why_or_asks_for_free_memory() -> None:
    code = "def f(model, x: torch.Tensor):\n    torch.cuda.empty_cache()\n\n    return {}\n"
    assert (
        fixed(HEAD + code.format("model(x)"), allowed=set(Safety))
        == HEAD + "def f(model, x: torch.Tensor):\n    return model(x)\n"
    )
    assert "empty_cache" in fixed(HEAD + code.format("torch.cuda.mem_get_info()"), allowed=set(Safety))
    said = code.replace("    torch.cuda", "    # CuPy needs the memory\n    torch.cuda").format("model(x)")
    assert "empty_cache" in fixed(HEAD + said, allowed=set(Safety))


UNBROKEN = {  # lines that no formatter breaks, and that so say nothing of the width
    "text": "    print('{words}')\n",
    "a value that is text": "    show(help='{words}')\n",
    "a docstring": '    """Say.\n\n    {words}\n    """\n',
    "a comment": "    # {words}\n",
    "allowed": f"    show({'x, ' * 30})  # type: ignore[call]\n",
}
EYE = "mask = torch.eye(*x.shape).bool().to(x.device)"


@pytest.mark.parametrize("line", UNBROKEN.values(), ids=UNBROKEN)
def test_what_no_formatter_breaks_says_nothing_of_the_width(line: str, tmp_path: Path) -> None:
    words = "what is said here is long, " * 4
    code = f"{HEAD}def f(model, x: torch.Tensor, target: torch.Tensor, show):\n{line.format(words=words)}"
    code += "    the_first, the_second = x.exp().mean().item(), target.exp().mean().item()\n    return the_first, the_second\n"
    after = laid_out(tmp_path, code, "")
    new = set(after.splitlines()) - set(code.splitlines())
    assert new
    assert max(map(len, new)) <= 88, after


def test_a_comment_at_the_end_of_a_line_has_its_width_too(tmp_path: Path) -> None:
    code = f"{HEAD}def f(x: torch.Tensor):\n    {EYE}  # leave out what is equal by itself\n    return mask\n"
    assert laid_out(tmp_path, code, "") == code.replace(
        EYE, "mask = torch.eye(\n        *x.shape, dtype=torch.bool, device=x.device\n    )"
    )


@pytest.mark.parametrize("why", ["noqa", "type: ignore[no-untyped-call, no-any-return]", "pylint: disable=no-member"])
def test_a_line_that_a_comment_allows_to_be_long_stays_one(why: str, tmp_path: Path) -> None:
    code = f"{HEAD}def f(x: torch.Tensor):\n    {EYE}  # {why}: of a kind of its own\n    return mask\n"
    assert laid_out(tmp_path, code, "") == code.replace(
        EYE, "mask = torch.eye(*x.shape, dtype=torch.bool, device=x.device)"
    )


def test_an_argument_that_is_put_first_stands_beside_the_others() -> None:
    code = f"{HEAD}def f(x: torch.Tensor):\n    return x * torch.tensor(\n        0.5, device=x.device\n    )\n"
    assert "torch.full(\n        (), 0.5, device=x.device\n    )" in fixed(code)


LONG = "(label.long() + offset)"
NAMED = {  # a long expression that the new code has three times gets a name, where nothing is done before it
    "a condition": ("if {}.max() > limit():\n        return 1", True),
    "an argument": ("show({}, limit())", True),
    "the value of an entry": ("kept[limit()] = {}", False),
    "after a call": ("show(limit(), {})", False),
    "one way only": ("show({} if limit else 0)", False),
    "the end of a chain": ("show(0 < 1 < {}.max())", False),
    "another condition": ("if limit:\n        pass\n    elif {}.max() > 3:\n        return 1", False),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_written_three_times_has_a_name_where_that_changes_no_order(name: str) -> None:
    line, has = NAMED[name]
    code = f"""import torch


def count(label: torch.LongTensor, offset: torch.LongTensor, limit, show, kept):
    {line.format(f"{LONG}.bincount(minlength=6)")}
"""
    after = fixed(code, "bincount")
    assert "index_add_" in after
    assert (f"values = {LONG[1:-1]}\n" in after) == has, after
    assert after.count(LONG[1:-1]) == (1 if has else 3)


QUOTED = "def f(x: torch.Tensor):\n    print({0}a{0}, {0}b{0})\n    return x.float()[x.isnan()].max(), torch.zeros(3).cuda()\n"


@pytest.mark.parametrize("quote", ["'", '"'])
def test_new_code_takes_the_quotes_of_its_file(quote: str) -> None:
    after = fixed(HEAD + QUOTED.format(quote), allowed=FIXES)
    assert f"torch.zeros(3, device={quote}cuda{quote})" in after


def test_what_is_added_to_a_call_of_many_lines_ends_no_line_with_a_blank() -> None:
    code = "def f(x: torch.Tensor):\n    return torch.zeros(\n        3, 4\n    ).to(\n        x.device\n    )\n"
    after = fixed(HEAD + code, allowed=FIXES)
    assert "torch.zeros(\n        3, 4, device=x.device\n    )" in after
    code = "def f(x: torch.Tensor):\n    return torch.tensor(1e-6,\n                        device=x.device)\n"
    assert "torch.full((), 1e-6,\n" in fixed(HEAD + code, allowed=FIXES)


def test_reads_in_a_row_stay_where_they_were() -> None:
    head = "def f(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, log):\n"
    reads = "a.mean().item(), b.mean().item(), c.mean().item()"
    stack = "*torch.stack((a.mean(), b.mean(), c.mean())).tolist()"
    for line in ('print("loss", {0})', 'log.info("%f %f %f", {0})', 'print("%d %f %f %f" % (3, {0}))'):
        assert line.format(stack) in fixed(f"{HEAD}{head}    {line.format(reads)}\n", allowed=FIXES)
    alone = fixed(f'{HEAD}{head}    print("%f %f %f" % ({reads}))\n', allowed=FIXES)
    assert f"% tuple({stack[1:]})" in alone


def test_two_reads_are_only_suggested_to_become_one() -> None:
    code = "def f(a: torch.Tensor, b: torch.Tensor):\n    print(a.mean().item(), b.mean().item())\n"
    assert fixed(HEAD + code, allowed=FIXES) == HEAD + code
    assert "torch.stack" in fixed(HEAD + code)


def test_a_name_that_is_taken_gets_a_word_before_it() -> None:
    body = "    x = x.flatten()\n    y = x.cos()\n    good = x > 0\n    return x[good] + y[good], good_index\n"
    code = f"def kept(x: torch.Tensor, good_index):\n{body}"
    assert "kept_good_index = good.nonzero" in fixed(HEAD + code, allowed=FIXES)


@pytest.mark.parametrize(
    ("beside", "name"),
    [
        (
            "def other(good):\n    good_index = good.nonzero()\n    return good_index\n",
            "good_index",
        ),  # no other function's
        ("class A:\n    good_index = 3\n", "kept_good_index"),
        ("good_index = 3\n", "kept_good_index"),
        ("def other():\n    global good_index\n    good_index = 3\n", "kept_good_index"),
    ],
)
def test_a_name_is_taken_where_it_could_be_meant(beside: str, name: str) -> None:
    body = "    x = x.flatten()\n    y = x.cos()\n    good = x > 0\n    return x[good] + y[good]\n"
    code = f"def kept(x: torch.Tensor):\n{body}"
    assert f"    {name} = good.nonzero" in fixed(f"{HEAD}{beside}\n\n{code}", allowed=FIXES)
    inner = f"    {code}".replace("\n    ", "\n        ")
    around = f"def outer(good_index):\n{inner}    return kept, good_index\n"
    assert "kept_good_index = good.nonzero" in fixed(HEAD + around, allowed=FIXES)


def test_many_new_names_stand_in_brackets_one_a_line() -> None:
    names = [f"{word}_loss_of_the_decoder" for word in ("first", "second", "third", "fourth")]
    given = ", ".join(f"{name}: torch.Tensor" for name in names)
    notes = "\n".join(f'            "{name}": {name}.mean().item(),' for name in names)
    code = f"def f(info, {given}):  # noqa: E501\n    info.update(\n        {{\n{notes}\n        }}\n    )\n"
    after = fixed(HEAD + code, allowed=FIXES)
    wanted = "\n".join(f"        {name}_mean," for name in names)
    assert f"    (\n{wanted}\n    ) = torch.stack(" in after
    compile(after, "after", "exec")


def test_a_chain_that_brackets_held_together_is_held_together_where_it_goes() -> None:
    code = (
        "def f(net, loader):\n    correct, count = 0, 0\n    for x, label in loader:\n        net(x).sum().backward()\n"
        "        correct += (\n            (net(x).argmax(dim=1) == label)\n            .float()\n            .sum()\n"
        "            .item()\n        )\n        count += label.numel()\n    return correct / count\n"
    )
    after = fixed(HEAD + code, allowed=FIXES)
    assert "correct = float(correct)" in after
    compile(after, "after", "exec")


def test_a_value_of_many_lines_stands_in_brackets_of_its_own_in_another_function() -> None:
    code = """
import numpy as np
import torch
from torch import nn

class Fields(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.offsets = np.array(
            (0, *np.cumsum(sizes)[:-1]), dtype=np.int64
        )

    def forward(self, x: torch.Tensor):
        return x + x.new_tensor(self.offsets)
"""
    buffer = """
        self.register_buffer(
            "offsets", torch.tensor(np.array((0, *np.cumsum(sizes)[:-1]), dtype=np.int64)), persistent=False
        )
"""
    assert buffer in fixed(code)
