"""A number written at positions, before and after the rewrite: every dtype, index, error and gradient, out of range included.

The examples are run on random inputs as all are, with indices that exist; an index that does not would end CUDA's context.
"""

import warnings
from collections.abc import Callable, Iterator

import pytest
from rules.driver import HEAD, findings, fixed

from syncscope.model.finding import Safety

torch = pytest.importorskip("torch")

NUMBERS = (0, 1.0, -1, 2.5, -7.5, True, 127, 300, 1e40, float("inf"), float("nan"), 2**40)
DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int64", "bool", "complex64")
SHAPES = ((3, 4), (3,), (), (0, 4), (4, 3, 2))
INDICES = {
    "two rows": [0, 2],
    "one row twice": [0, 0, 1],
    "from the end": [-1],
    "out of range": [5],
    "none": [],
    "two dimensions": [[0, 1], [1, 0]],
    "one number": 1,
}


def put(x: object, index: object, number: object) -> None:
    x[index] = number


def put_made(x: object, index: object, number: object) -> None:
    short = {0: x.new_zeros, 1: x.new_ones}
    plain = not isinstance(number, bool) and number in short
    x[index] = short[number](()) if plain else x.new_full((), number)


def fill(x: object, index: object, number: object) -> None:
    x[index].fill_(number)


def outcome(write: Callable[[object, object, object], None], given: object, graph: str, *told: object) -> object:
    """What a write leaves, as text, with the gradient that comes back; or its error."""
    leaf = given.clone()
    x = leaf
    if graph:
        leaf.requires_grad_()
        x = leaf if graph == "leaf" else leaf * 1
    try:
        write(x, *told)
        if graph == "inner":
            (x * 2).sum().abs().backward()
    except (IndexError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return str(x.dtype), str(x.detach().tolist()), str(leaf.grad)


def tensors(kind: torch.dtype) -> Iterator[tuple[object, str]]:
    """One of each shape, as a leaf and within a graph where it can have a gradient."""
    for shape in SHAPES:
        given = torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape).to(kind)
        for graph in ("", "leaf", "inner") if kind.is_floating_point else ("",):
            yield given, graph


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_made_on_the_device_is_written_alike(dtype: str) -> None:
    seen = set()
    for given, graph in tensors(getattr(torch, dtype)):
        for word, places in INDICES.items():
            index = torch.tensor(places, dtype=torch.int64)
            for number in NUMBERS:
                before = outcome(put, given, graph, index, number)
                assert outcome(put_made, given, graph, index, number) == before, (given.shape, graph, word, number)
                seen.add(type(before))
    assert seen == {str, tuple}


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_element_is_filled_alike(dtype: str) -> None:
    kind = getattr(torch, dtype)
    least = -128 if kind.is_floating_point else 0  # where number and index are both wrong, the other one is reported
    for given, graph in tensors(kind):
        for number in (n for n in NUMBERS if least < n + 1 < 129):
            before = outcome(put, given, graph, (0, -1), number)
            assert outcome(fill, given, graph, (0, -1), number) == before, (given.shape, graph, number)


def index_fill(x: object, index: object, number: object) -> None:
    x.index_fill_(0, index, number)


@pytest.mark.parametrize("dtype", DTYPES)
def test_index_fill_writes_the_same_at_positions_that_exist(dtype: str) -> None:
    kind = getattr(torch, dtype)
    for given, graph in tensors(kind):
        for word in ("two rows", "one row twice", "from the end", "none"):
            index = torch.tensor(INDICES[word], dtype=torch.int64)
            if given.ndim == 0 or (len(given) == 0 and len(index)):
                continue
            for number in (0, 1.0, True, 2.5, 100):
                before = outcome(put, given, graph, index, number)
                after = outcome(index_fill, given, graph, index, number)
                assert type(after) is type(before), (given.shape, graph, word, number)
                assert isinstance(before, str) or after == before, (given.shape, graph, word, number)


def test_what_index_fill_asks_of_its_index_is_said() -> None:
    """It knows one dimension and int64 alone: the fix says so where nothing shows it."""
    x = torch.zeros(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index in (torch.tensor([[0]]), torch.tensor([0], dtype=torch.int32)):
            x[index] = 1.0
            with pytest.raises((IndexError, RuntimeError)):
                x.index_fill_(0, index, 1.0)
    assert changes("def f(x: torch.Tensor, i: torch.Tensor):\n    j = i.int()\n    x[j] = 0\n").startswith(
        "j must be int64 and have one dimension; "
    )
    assert changes("def f(x: torch.Tensor, v: torch.Tensor):\n    x[v.flatten().argsort()] = 0\n") == (
        "an index that is out of range is reported in other words"
    )


def changes(code: str) -> str:
    """What the fix of some code says that it changes."""
    (fix,) = [f.fix for f in findings(HEAD + code, "number-at-positions") if f.fix is not None]
    return fix.changes


SEVERAL = """
def f(mat: torch.Tensor, {arguments}):
    {taken}mask = torch.zeros_like(mat)
    mask[a, p] = 1
    return (mask * mat).sum()
"""


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        ("a: torch.Tensor, p: torch.Tensor", ""),
        ("a: torch.Tensor, p", ""),
        ("a, p: torch.LongTensor", ""),
        ("a: torch.LongTensor, p: torch.LongTensor", ""),
        ("a, p", ""),
        ("pairs", "a, p = pairs\n    "),
        ("pairs", "a, p, _, _ = pairs\n    "),
    ],
)
def test_at_several_indices_annotations_make_nobody_less_sure_and_the_number_is_made_on_the_device(
    arguments: str, taken: str
) -> None:
    (found,) = findings(HEAD + SEVERAL.format(arguments=arguments, taken=taken), "number-at-positions")
    assert found.confidence >= 2
    assert found.fix is not None
    assert found.fix.safety is Safety.SAFE
    assert [edit.text for edit in found.fix.edits] == ["mask.new_ones(())"]


@pytest.mark.parametrize("kinds", ["positions", "masks", "a mask and positions", "numbers", "a number and positions"])
def test_a_number_made_on_the_device_is_written_alike_at_whatever_several_indices_are(kinds: str) -> None:
    positions, mask = torch.tensor([0, 2, 0]), torch.tensor([True, False, True])
    index = {
        "positions": (positions, positions),
        "masks": (mask, mask),
        "a mask and positions": (mask, torch.tensor([1, 0])),
        "numbers": (1, 2),
        "a number and positions": (1, positions),
    }[kinds]
    for given, graph in ((torch.zeros(3, 3), ""), (torch.arange(9).view(3, 3), ""), (torch.ones(3, 3), "inner")):
        assert outcome(put_made, given, graph, index, 1) == outcome(put, given, graph, index, 1)


@pytest.mark.parametrize("index", ["a", "a, :", "0, a", "a, None"])
def test_what_may_be_one_mask_is_filled_and_stays(index: str) -> None:
    code = f"def f(mat: torch.Tensor, a):\n    mask = torch.zeros_like(mat)\n    mask[{index}] = 1\n    return mask * mat\n"
    assert all(found.fix is None for found in findings(HEAD + code, "number-at-positions"))


def test_positions_that_another_function_looked_for_get_the_number_made_where_they_are() -> None:
    pairs = "def pairs(labels):\n    return torch.where(labels[:, None] == labels)\n\n\n"
    code = (
        "def f(mat: torch.Tensor, labels: torch.Tensor):\n    a, p = LOOK\n"
        "    mask = torch.zeros_like(mat)\n    mask[a, p] = 1\n    return mask * mat\n"
    )
    given = findings(HEAD + pairs + code.replace("LOOK", "pairs(labels)"), "number-at-positions")
    assert [found.fix.safety for found in given if found.fix is not None] == [Safety.SAFE]
    here = code.replace("LOOK", "torch.where(labels[:, None] == labels)")
    assert all(found.fix is None for found in findings(HEAD + here, "number-at-positions"))


def test_positions_that_are_computed_and_may_have_more_dimensions_are_no_reason_to_ask_for_one() -> None:
    code = "def f(x: torch.Tensor, i: torch.Tensor):\n    x = x.exp()\n    x[i.long()] = 0\n    return x\n"
    (fix,) = {f.fix for f in findings(HEAD + code, "number-at-positions")}
    assert fix is not None
    assert fix.safety is Safety.SAFE
    assert "x[i.long()] = x.new_zeros(())" in fixed(HEAD + code, "number-at-positions")
