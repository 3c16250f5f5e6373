"""Fuzzes the linter: `python tests/fuzz_lint.py --seconds 3600`. Not part of the suite; what it finds becomes a test there.

Inputs are the rules' examples, the samples and programs drawn from Python's grammar (by hypothesmith, if it is installed),
mixed and damaged at random. For each one:

- linting and fixing raise nothing, and findings lie within the file;
- what was Python before fixing is Python after it, and a second fixing changes nothing;
- every byte that no edit covers is where it was;
- of some, a statement stands there some hundred times, and twice as often: that takes less than three times as long.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import inspect
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from syncscope import rules
from syncscope.errors import UserError
from syncscope.linter import engine, notebooks, run
from syncscope.linter.config import Config
from syncscope.linter.fixing import compatible, edits_of
from syncscope.model.finding import Safety

TAILS = ("  # ä 世界 𝄞", " \\", ";", "  # syncscope: allow[host-read]", "  # noqa", "\f", " ; pass")
HEADS = ("if x:", "for i in y:", "with z:", "try:", "else:", "@d", "async def f():")
CRUMBS = ("(", ")", "[", "'", '"""', ":=", "*", "\t", "lambda: ", "\0", "\\\n")
NAMES = ("ｘ", "x.y", "(x)", "x[0]", "(yield x)", "f'{x}'", "*x")
ROOT = Path(__file__).parents[1]
EVERYTHING = Config(all=True, min_confidence="low", backend="ocl")
TIMES, LEAST = 150, 0.3  # repetitions of a statement; CPU seconds below which growth is not looked at
FIXES = frozenset({Safety.SAFE, Safety.UNSAFE})


def seeds() -> list[str]:
    """Code that the rules speak of."""
    every = [e for name, rule in rules.builtin().items() for e in rules.examples(name, rule)]
    found = [inspect.cleandoc(e.code) for e in every]
    found += [inspect.cleandoc(e.fixed) for e in every if e.fixed]
    return [*found, *(path.read_text() for path in sorted((ROOT / "samples").glob("*.py")))]


def grammar() -> Callable[[random.Random], str] | None:
    """Programs drawn from the grammar."""
    try:
        import hypothesmith
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import seed as seeded
    except ImportError:
        return None

    def draw(chance: random.Random) -> str:
        drawn: list[str] = []

        @seeded(chance.getrandbits(32))
        @settings(
            max_examples=5,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(hypothesmith.from_node())
        def keep(code: str) -> None:
            drawn.append(code)

        keep()
        return max(drawn, key=len)

    return draw


def damage(code: str, others: list[str], chance: random.Random) -> bytes:
    """The code with a few random changes, most of which leave it Python."""
    for _ in range(chance.choice((0, 1, 1, 2, 4, 8))):
        changed = change(code, chance.choice(others), chance)
        if chance.random() < 0.05 or parses(changed):
            code = changed
    text = chance.choice(("\n", "\n", "\r\n", "\r")).join(code.split("\n"))
    raw = text.encode("utf-8", "surrogatepass")
    match chance.randrange(10):
        case 0:
            raw = b"\xef\xbb\xbf" + raw
        case 1:
            raw = b"# coding: latin-1\n" + text.encode("latin-1", "replace")
        case 2:
            raw = raw[: chance.randrange(len(raw) + 1)]
    return raw if b"torch" in raw else raw + b"\n# torch"


def change(code: str, another: str, chance: random.Random) -> str:
    """The code with one random change."""
    lines, other = code.split("\n"), another.split("\n")
    at = chance.randrange(len(lines))
    match chance.randrange(16):
        case 0:
            lines[at : at + 1] = []
        case 1:
            lines.insert(at, lines[chance.randrange(len(lines))])
        case 2:
            lines.insert(at, chance.choice(other))
        case 3:
            lines[at] = "    " + lines[at]
        case 4:
            lines[at] += chance.choice(TAILS)
        case 5:
            words = lines[at].split(" ")
            chance.shuffle(words)
            lines[at] = " ".join(words)
        case 6:
            indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
            lines[at:at] = [indent + chance.choice(HEADS)]
            lines[at + 1 :] = ["    " + line for line in lines[at + 1 :]]
        case 7:
            cut = chance.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:cut] + chance.choice(CRUMBS) + lines[at][cut:]
        case 8:
            lines[at] = lines[at].replace("x", chance.choice(NAMES))
        case 9:
            lines = [*other, *lines]
        case 10:
            lines = [("\t" + line) if line else line for line in lines]
            lines.insert(0, "if torch:")
        case 11:
            lines = ["class C:", *("    " + line for line in lines)]
        case _:
            return grafted(code, another, chance)
    return "\n".join(lines)


def grafted(code: str, another: str, chance: random.Random) -> str:
    """The code with one of its expressions or statements replaced by one of another program's."""
    kind = chance.choice((ast.expr, ast.expr, ast.stmt))
    mine, theirs = ([n for n in nodes(text) if isinstance(n, kind)] for text in (code, another))
    if not mine or not theirs or "\r" in code:  # lines are counted by line feeds here
        return code
    old, new = chance.choice(mine), ast.get_source_segment(another, chance.choice(theirs)) or "x"
    rows = code.split("\n")
    first, last = rows[old.lineno - 1].encode(), rows[old.end_lineno - 1].encode()
    before, after = first[: old.col_offset].decode(), last[old.end_col_offset :].decode()
    if kind is ast.stmt:
        new = ("\n" + " " * old.col_offset).join(inspect.cleandoc(new).split("\n"))
    return "\n".join([*rows[: old.lineno - 1], before + new + after, *rows[old.end_lineno :]])


def nodes(code: str) -> list[ast.AST]:
    """What a program is made of; nothing where it is none."""
    return list(ast.walk(ast.parse(code))) if parses(code) else []


def parses(code: str) -> bool:
    """Whether it is Python."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def check(raw: bytes) -> str:
    """Everything that must hold for any input: "broken", "clean", "found" or "fixed"; raises where something does not hold."""
    checked = engine.check("fuzz.py", raw, EVERYTHING)
    broken = any(f.rule == "syntax-error" for f in checked.findings)
    if not broken:
        source = notebooks.source_of("fuzz.py", raw)
        assert source.edited([]) == raw
        for finding in checked.findings:
            assert 0 <= finding.span.start <= finding.span.end <= len(source.code), finding
            assert source.position(finding.span.start) == (finding.place.line, finding.column), finding
        untouched(source, compatible([f for f in checked.findings if f.fix]))
    done = run.mended(run.Job("fuzz.py", EVERYTHING, FIXES), raw)
    if done.mended is None:
        return "broken" if broken else "found" if checked.findings else "clean"
    assert not any("does not parse" in why or "undo one another" in why for why in done.mended.refused), (
        done.mended.refused
    )
    assert not any(f.rule == "syntax-error" for f in done.checked.findings)
    ast.parse(notebooks.source_of("fuzz.py", done.mended.raw).code)
    again = run.mended(run.Job("fuzz.py", EVERYTHING, FIXES), done.mended.raw)
    assert again.mended is None or again.mended.raw == done.mended.raw, "a second fixing changes something"
    return "fixed"


def untouched(source: engine.SourceFile, findings: list[engine.Finding]) -> None:
    """Whether the pieces between edits are found again, in order, in the edited bytes."""
    edits = sorted(edits_of(findings), key=lambda e: e.span)
    try:
        new = source.edited(edits)
    except UserError:
        return  # the encoding cannot hold a fix: nothing is written
    at = place = 0
    text = new.removeprefix(source.bom)
    if source.encoding != "utf-8":
        text = text.decode(source.encoding).encode()
    for edit in edits:
        piece = source.text[at : edit.span.start]
        assert text[place : place + len(piece)] == piece
        place += len(piece) + len(edit.text.encode())
        at = edit.span.end
    assert text[place:] == source.text[at:]


def repeated(code: str, chance: random.Random) -> Callable[[int], bytes] | None:
    """The code with one of its statements so and so many times; nothing where it has none on lines of its own."""
    plain = (ast.Expr, ast.Assign, ast.AugAssign, ast.If, ast.For, ast.While, ast.With, ast.Assert)
    rows, found = code.split("\n"), [node for node in nodes(code) if isinstance(node, plain)]
    found = [node for node in found if not rows[node.lineno - 1][: node.col_offset].strip()]
    if not found or "\r" in code:
        return None
    one = chance.choice(found)
    before, own, after = rows[: one.lineno - 1], rows[one.lineno - 1 : one.end_lineno], rows[one.end_lineno :]
    return lambda times: "\n".join([*before, *own * times, *after]).encode("utf-8", "surrogatepass")


def grows(make: Callable[[int], bytes]) -> str:
    """What took how long, where twice the input took three times as long or more, twice over; "" where it did not."""
    said = []
    for times in (TIMES, TIMES, 2 * TIMES):
        taken = []
        for often in (times, 2 * times):
            raw, start = make(often), time.process_time()
            engine.check("fuzz.py", raw, EVERYTHING)
            taken.append(time.process_time() - start)
        if taken[1] < LEAST or taken[1] < 3 * taken[0]:
            return ""
        said.append(f"{times} times {taken[0]:.2f} s, {2 * times} times {taken[1]:.2f} s")
    return "; ".join(said)


def inputs(chance: random.Random) -> Iterator[bytes]:
    """Inputs without end."""
    known = seeds()
    drawn = grammar()
    while True:
        code = chance.choice(known)
        if drawn and chance.random() < 0.02:
            known[chance.randrange(len(known))] = code  # the pool stays as large as it is
            code = f"import torch\n{drawn(chance)}\n{code}"
        yield damage(code, known, chance)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz", help="where inputs that fail are kept")
    parser.add_argument("files", nargs="*", type=Path, help="check these inputs again instead")
    said = parser.parse_args()
    warnings.simplefilter("ignore")  # Python's own, about invalid escapes
    if said.files:
        for path in said.files:
            check(path.read_bytes())
        return 0
    seed = random.SystemRandom().getrandbits(32) if said.seed is None else said.seed
    print(f"seed {seed}", flush=True)
    end, count, kinds = time.monotonic() + said.seconds, Counter[str](), set[str]()
    chance, known = random.Random(seed), seeds()
    for raw in inputs(random.Random(seed)):
        if time.monotonic() > end:
            break
        start = time.process_time()
        try:
            many = repeated(chance.choice(known), chance) if chance.random() < 0.03 else None
            if many is not None and (grown := grows(many)):
                raw = many(2 * TIMES)
                raise AssertionError(f"its cost grows faster than it does: {grown}")
            start = time.process_time()
            count[check(raw)] += 1
            took = time.process_time() - start
            if took < 20:
                continue
            kind = what = f"it took {took:.0f} CPU seconds"
        except (Exception, RecursionError) as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
            what = "".join(traceback.format_exception(error)[-6:])
        if kind not in kinds:
            kinds.add(kind)
            said.out.mkdir(parents=True, exist_ok=True)
            path = said.out / f"{hashlib.blake2b(raw, digest_size=6).hexdigest()}.py"
            path.write_bytes(raw)
            print(f"{path}: {kind}\n{what}", flush=True)
    print(f"{count.total()} inputs ({dict(count)}), {len(kinds)} kinds of failure", flush=True)
    return int(bool(kinds))


if __name__ == "__main__":
    sys.exit(main())
