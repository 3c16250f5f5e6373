"""How fixed code is laid out: as formatters would have it, within the project's width, with its comments and imports."""

from pathlib import Path
from textwrap import dedent, indent

import pytest
from rules.driver import config, fixed

from syncscope.linter.engine import check_file
from syncscope.linter.fixing import mend
from syncscope.model.finding import Safety

FIXES = {Safety.SAFE, Safety.UNSAFE}
HEAD = "import torch\n\n\n"


def laid_out(folder: Path, code: str, settings: str) -> str:
    """The code after its fixes, in a project with these settings."""
    (folder / "pyproject.toml").write_text(settings)
    path = folder / "x.py"

    def found(source: object) -> object:
        path.write_bytes(source.raw)  # type: ignore[attr-defined]
        return check_file(str(path), config()).findings

    return mend(str(path), code.encode(), found, FIXES).raw.decode()  # type: ignore[arg-type]


BROAD = {
    "an operation": (
        """
        size = torch.tensor([height, width], device=image.device, dtype=image.dtype).view(1, 2) / 2.0 - 0.5
        return image * size
        """,
        """
        size = (
            torch.tensor([height, width], device="cpu", dtype=image.dtype).to(
                image.device, non_blocking=True
            ).view(1, 2) / 2.0
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
            image,
            1,
            torch.tensor([1, height], device="cpu", dtype=torch.long).to(
                image.device, non_blocking=True
            ),
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
            torch.tensor([a, b], device="cpu").to(image.device, non_blocking=True).expand(3, 2)
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
            size=torch.tensor([height, width], device="cpu", dtype=torch.long).to(
                image.device, non_blocking=True
            ),
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
    after = fixed(HEAD + dedent(code), allowed=FIXES)
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
        fixed(HEAD + code.format("model(x)"), allowed=FIXES)
        == HEAD + "def f(model, x: torch.Tensor):\n    return model(x)\n"
    )
    assert "empty_cache" in fixed(HEAD + code.format("torch.cuda.mem_get_info()"), allowed=FIXES)
    said = code.replace("    torch.cuda", "    # CuPy needs the memory\n    torch.cuda").format("model(x)")
    assert "empty_cache" in fixed(HEAD + said, allowed=FIXES)
