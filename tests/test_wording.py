"""Nothing asks what a sentence says: what decides is a value, words are made of it last. What others say may be asked for."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
import sources

WORDS = re.compile(r"[A-Za-z]{2,} +[a-z]{2,}| [a-z]{3,} |[a-z]{3,}: $")
ASKS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "find", "index", "split"}
OF_OTHERS = {
    "tracers/hooks/pyopencl.py": {"fallback of "},  # the name of an operator, as recordings have it
    "model/ops.py": {"fallback of "},  # the same
    "model/source.py": {" (as recorded)"},  # the mark of a path, ours, as docs/report.md has it
    "analysis/modules.py": {"nn.Module: "},  # of ranges, as torch.profiler names them
    "kineto/columns.py": {"host waits (syncscope)"},  # of a lane, ours
    "exporters/_xplane.py": {"host waits (syncscope)"},
    "analysis/waits.py": {"async copy"},  # a kind of its own
    "kernels/fallback.py": {" not implemented for '"},  # torch's
    "kernels/selftest.py": {"model name"},  # a line of /proc/cpuinfo
    "kineto/scan.py": {"trailing characters"},  # msgspec's
    "linter/revision.py": {"fatal: ", "not a git repository"},  # git's
    "linter/diagnostics.py": {"Missing parentheses in call to 'print'", "multiple exception types must be"},  # Python's
    "tracers/program.py": {"<frozen runpy>", "<frozen importlib"},
    "cli/explain.py": {"Use instead"},  # headings of a page
    "rules/__init__.py": {"Fix safety", "Why it waits", "What happens", "What to do", "When a fix pays"},
    "kineto/write.py": {"Input type"},  # keys of a recording
    "native.py": {"error: "},  # a compiler's
    "kernels/comprehensions/explain.py": {" where "},  # of the notation
    "codemod/new_imports.py": {"import math", "import functools", "import torch"},  # code
}


def named(path: Path) -> dict[str, ast.expr]:
    """What the names of a file stand for that are bound once at its top, to anything but a call."""
    found = {}
    for node in ast.iter_child_nodes(sources.nodes(path)[0]):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not isinstance(value, (ast.Call, ast.Dict)):
                found[name] = value
    return found


def known(path: Path) -> dict[str, ast.expr]:
    """What the names of a file stand for, those that it imports from ours, too."""
    found = named(path)
    for node in sources.nodes(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("syncscope."):
            home = sources.ROOT / f"{'/'.join(str(node.module).split('.')[1:])}.py"
            theirs = named(home) if home.is_file() else {}
            found |= {each.name: theirs[each.name] for each in node.names if each.name in theirs}
    return found


def texts(nodes: list[ast.expr], names: Mapping[str, ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in names:
            yield from texts([names[node.id]], {})
        elif isinstance(node, (ast.Tuple, ast.Set, ast.List)):
            yield from texts(node.elts, names)
        elif isinstance(node, ast.JoinedStr):
            yield from texts(node.values, names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def asked(nodes: Iterable[ast.AST], names: Mapping[str, ast.expr]) -> Iterator[tuple[int, str]]:
    """The sentences that something is compared with, looked for in, or cut off, and their lines."""
    for node in nodes:
        if isinstance(node, ast.Compare):
            found = texts([node.left, *node.comparators], names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKS:
            found = texts(node.args, names)
        elif isinstance(node, ast.MatchValue):
            found = texts([node.value], names)
        else:
            continue
        yield from ((getattr(node, "lineno", 0), words) for words in found if WORDS.search(words))


@pytest.mark.parametrize(
    "code",
    [
        'why.endswith("it may be called so")',
        '"not in a step" in reason',
        'said == "the device waits"',
        'report.verdict.partition("No savings: ")',
        'match why:\n    case "runs once": pass',
        "why == LATER",
    ],
)
def test_a_question_to_a_sentence_is_seen(code):
    assert list(asked(ast.walk(ast.parse(code)), {"LATER": ast.Constant("it runs once")}))


@sources.IN_ONE_WORKER
def test_nothing_asks_what_a_sentence_says():
    for path in sources.FILES:
        file = path.relative_to(sources.ROOT).as_posix()
        strange = [
            f"{file}:{line}: {words!r}"
            for line, words in asked(sources.nodes(path), known(path))
            if words not in OF_OTHERS.get(file, ())
        ]
        assert not strange, "\n".join(strange)
