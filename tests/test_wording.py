"""Nothing asks what a sentence says: what decides is a value, words are made of it last. What others say may be asked for."""

import ast
import re
from collections.abc import Iterable, Iterator

import pytest
import sources

WORDS = re.compile(r"[A-Za-z]{2,} +[a-z]{2,}| [a-z]{3,} |[a-z]{3,}: $")
ASKS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "find", "index", "split"}
OF_OTHERS = {
    "analysis/reads.py": {"fallback of "},  # the name of an operator, as recordings have it
    "tracers/hooks/pyopencl.py": {"fallback of "},
    "analysis/waits.py": {"Stream Wait", "async copy"},  # CUPTI's word; a kind of its own
    "kernels/fallback.py": {" not implemented for '"},  # torch's
    "kernels/selftest.py": {"model name"},  # a line of /proc/cpuinfo
    "kineto/scan.py": {"trailing characters"},  # msgspec's
    "linter/revision.py": {"fatal: ", "not a git repository"},  # git's
    "linter/diagnostics.py": {"Missing parentheses in call to 'print'", "multiple exception types must be"},  # Python's
    "tracers/program.py": {"<frozen runpy>"},
    "cli/explain.py": {"Use instead"},  # headings of a page
    "rules/__init__.py": {"Fix safety", "Why it waits"},
    "exporters/_waiting.py": {"of step"},
    "exporters/_footnotes.py": {"idle after"},
    "kineto/write.py": {"Input type"},  # keys of a recording
    "native.py": {"error: "},  # a compiler's
    "kernels/comprehensions/explain.py": {" where "},  # of the notation
    "codemod/new_imports.py": {"import math", "import functools", "import torch"},  # code
}


def texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, (ast.Tuple, ast.Set, ast.List)):
            yield from texts(node.elts)
        elif isinstance(node, ast.JoinedStr):
            yield from texts(node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def asked(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """The sentences that something is compared with, looked for in, or cut off, and their lines."""
    for node in nodes:
        if isinstance(node, ast.Compare):
            found = texts([node.left, *node.comparators])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKS:
            found = texts(node.args)
        elif isinstance(node, ast.MatchValue):
            found = texts([node.value])
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
    ],
)
def test_a_question_to_a_sentence_is_seen(code):
    assert list(asked(ast.walk(ast.parse(code))))


@sources.IN_ONE_WORKER
def test_nothing_asks_what_a_sentence_says():
    for path in sources.FILES:
        file = path.relative_to(sources.ROOT).as_posix()
        strange = [
            f"{file}:{line}: {words!r}"
            for line, words in asked(sources.nodes(path))
            if words not in OF_OTHERS.get(file, ())
        ]
        assert not strange, "\n".join(strange)
