"""Where fixed code is broken into lines: as formatters would, within the width that the project's own lines keep."""

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
    "what a value is given to, with a comment for a tool behind": (
        """
        image = torch.zeros(image.shape, device="cuda") + image
        image[torch.arange(height)[:, None, None], torch.arange(width)[None, :, None], other] = (
            -torch.inf
        )  # this leaves it out  # NoQA
        return image
        """,
        """
        image = torch.zeros(image.shape, device="cuda") + image
        image[
            torch.arange(height, device=image.device)[:, None, None],
            torch.arange(width, device=image.device)[None, :, None],
            other,
        ] = image.new_full((), -torch.inf)  # this leaves it out  # NoQA
        return image
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


def test_many_new_names_stand_in_brackets_one_a_line() -> None:
    names = [f"{word}_loss_of_the_decoder" for word in ("first", "second", "third", "fourth")]
    given = ", ".join(f"{name}: torch.Tensor" for name in names)
    notes = "\n".join(f'            "{name}": {name}.mean().item(),' for name in names)
    code = f"def f(info, {given}):  # noqa: E501\n    info.update(\n        {{\n{notes}\n        }}\n    )\n"
    after = fixed(HEAD + code, allowed=FIXES)
    wanted = "\n".join(f"        {name}_mean," for name in names)
    assert f"    (\n{wanted}\n    ) = torch.stack(" in after
    compile(after, "after", "exec")


def test_a_clause_that_has_a_line_of_its_own_is_folded_at_its_brackets(tmp_path: Path) -> None:
    """What begins with `else` was divided before its first word, again and again."""
    code = f"""{HEAD}

def f(x, valid: torch.Tensor, device):
    chosen = torch.nonzero(valid.cpu())
    return (
        x
        if chosen.numel() == valid.numel()
        else x.index_select(0, chosen.to(device))
    )
"""
    then = "        else x.index_select(\n            0, chosen.to(device, non_blocking=True)\n        )\n"
    assert then in laid_out(tmp_path, code, "[tool.ruff]\nline-length = 60\n")


def test_a_line_that_was_too_long_and_does_not_grow_keeps_its_layout(tmp_path: Path) -> None:
    told = " ".join(f"{name}:{{:0.4f}}" for name in "abcdefghijklmnopqrst")
    line = f"print('{told}'.format(step, lr, {', '.join(['lr / 2'] * 18)}, READ))"
    assert len(line) > 160
    code = f"import torch\n\n\ndef train(net, x: torch.Tensor, log, step, lr):\n    loss = net(x).float().mean()\n    {line}\n"
    code = f"{code}    loss.backward()\n    log.append(loss.item())\n".replace("READ", "loss.item()")
    after = laid_out(tmp_path, code, "")
    assert f"    {line.replace('READ', 'loss_value')}\n" in after
