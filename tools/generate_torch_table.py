"""Write syncscope/tensors/torch/callables.json from the installed torch's own schemas, tags and namespaces.

    python -m tools.generate_torch_table            # rewrites the table
    python -m tools.generate_torch_table --check    # says whether it is up to date, exit code 1 when not

An entry reads `"narrow": "T 1dim 3length"`: what comes back (T tensor, L list of tensors, N Python number, B bool, ? other;
TT is a pair of tensors, alternatives are joined by |), then the parameters that take a Python number in every overload that
has them, by position and name (`*alpha` is keyword-only, `#1size` is a list of numbers that may be spread from there on).
"""

from __future__ import annotations

import inspect
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

TABLE = Path(__file__).parents[1] / "syncscope" / "tensors" / "torch" / "callables.json"
SPACES = {
    "torch": torch,
    "torch.nn.functional": torch.nn.functional,
    "torch.linalg": torch.linalg,
    "torch.special": torch.special,
    "torch.fft": torch.fft,
}
NUMBERS = {"Scalar", "number", "int", "SymInt", "float", "number?", "Scalar?", "int?", "SymInt?", "float?"}
NOT_NUMBERS = {"dtype", "layout", "memory_format", "device", "path"}  # enumerations that the schemas spell as int
NUMBER_LISTS = {"int[]", "SymInt[]", "List[int]", "List[SymInt]"}


def returned(schema: Any) -> str:
    """What an operator gives back, in the table's letters."""

    def one(kind: str) -> str:
        if kind == "Tensor":
            return "T"
        if kind in ("List[Tensor]", "Tensor[]"):
            return "L"
        if kind in ("bool", "Bool"):
            return "B"
        return "N" if kind in NUMBERS else "?"

    return "".join(one(str(r.type)) for r in schema.returns) or "?"


def tensor_schemas() -> dict[str, list[Any]]:
    """The overloads of every aten operator that PyTorch's Python door can reach, without the out= forms."""
    found: dict[str, list[Any]] = defaultdict(list)
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        args = [str(a.type) for a in schema.arguments]
        named = {a.name for a in schema.arguments}
        if (
            space == "aten"
            and "Tensor" in " ".join(args + [str(r.type) for r in schema.returns])
            and "out" not in named
        ):
            found[name].append(schema)
    return found


def slots(schemas: list[Any]) -> str:
    """The parameters that take a Python number wherever they occur."""
    kinds: dict[str, set[str]] = defaultdict(set)
    places: dict[str, set[int]] = defaultdict(set)
    for schema in schemas:
        for position, argument in enumerate(schema.arguments):
            kinds[argument.name].add(
                str(argument.type).replace("Optional[", "").rstrip("]") + ("]" if "List" in str(argument.type) else "")
            )
            places[argument.name].add(-1 if argument.kwarg_only else position)
    taken: dict[int, set[str]] = defaultdict(set)
    for name, positions in places.items():
        for position in positions:
            taken[position] |= kinds[name]
    words = []
    for name, of in kinds.items():
        if name in NOT_NUMBERS:
            continue
        where = min(places[name])
        if of <= NUMBERS and (where < 0 or taken[where] <= NUMBERS | NUMBER_LISTS):
            words.append(f"{where}{name}" if where >= 0 else f"*{name}")
        elif of <= NUMBERS | NUMBER_LISTS and (where < 0 or taken[where] <= NUMBERS | NUMBER_LISTS):
            words.append(f"#{where}{name}")
    return " ".join(words)


def table() -> dict[str, Any]:
    """The whole table."""
    schemas = tensor_schemas()

    def entry(name: str) -> str | None:
        of = schemas.get(name)
        if not of:
            return None
        back = "|".join(sorted({returned(s) for s in of}))
        return f"{back} {slots(of)}".rstrip()

    out: dict[str, Any] = {"version": torch.__version__.partition("+")[0]}
    for space, module in SPACES.items():
        prefix = {"torch.linalg": "linalg_", "torch.special": "special_", "torch.fft": "fft_"}.get(space, "")
        found = {}
        for name in sorted(dir(module)):
            if name.startswith("_") or not callable(getattr(module, name)) or inspect.isclass(getattr(module, name)):
                continue
            code = entry(prefix + name) or entry(name)
            if code:
                found[name] = code
            elif space == "torch.nn.functional":
                found[name] = "T"
        out[space] = found
    methods = {}
    for name in sorted(dir(torch.Tensor)):
        of = [s for s in schemas.get(name, ()) if s.arguments and s.arguments[0].name == "self"]
        if not name.startswith("_") and of:
            methods[name] = f"{'|'.join(sorted({returned(s) for s in of}))} {slots(of)}".rstrip()
    out["torch.Tensor"] = methods
    out["modules"] = sorted(
        n for n, c in vars(torch.nn).items() if inspect.isclass(c) and issubclass(c, torch.nn.Module)
    )
    out["distributions"] = sorted(torch.distributions.__all__)
    out["optimizers"] = sorted(n for n, c in vars(torch.optim).items() if inspect.isclass(c))
    out["tags"] = tagged()
    return out


def tagged() -> dict[str, list[str]]:
    """The operators whose result's shape or value the host must wait for, as torch itself tags them."""
    want = {torch.Tag.dynamic_output_shape: set(), torch.Tag.data_dependent_output: set()}
    for full in torch._C._dispatch_get_all_op_names():
        space, _, rest = full.partition("::")
        name, _, overload = rest.partition(".")
        packet = getattr(getattr(torch.ops, space), name, None) if space == "aten" else None
        for tag in getattr(getattr(packet, overload or "default", None), "tags", ()):
            if tag in want:
                want[tag].add(name)
    return {str(tag).removeprefix("Tag."): sorted(names) for tag, names in want.items()}


def text() -> str:
    """The table as its file holds it."""
    return json.dumps(table(), indent=0, sort_keys=True) + "\n"


def main() -> int:
    """Write the table, or with --check compare it; the exit code."""
    new = text()
    if "--check" in sys.argv:
        same = TABLE.read_text() == new
        print("up to date" if same else f"{TABLE.name} differs from torch {torch.__version__}: run without --check")
        return not same
    TABLE.write_text(new)
    print(f"{TABLE}: {len(new)} bytes from torch {torch.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
