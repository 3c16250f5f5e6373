"""One hazard, one file: prose, which sites it claims, examples, and the rewrite.

A rule is a module. Its name is its file's name (`boolean_mask_read.py` is `boolean-mask-read`), its docstring its page:
a summary line, then the sections "Why it waits", "What to do" where that needs words, and "Fix safety"; the sections
"Example" and "Use instead" are made of `EXAMPLES`. The rest is in `Rule`. A user's own rules are the same kind of module in
a folder of theirs (`from_folder`) or behind an entry point of the group `syncscope.rules` (`installed`).

A linter asks like this, and needs libcst only in the last line, and only where a fix is built:

    view = View(code, sites)                      # once a file
    rule = claims(rules)[site.op]
    said = rule.message(site, view)               # None: not a hazard after all
    fix = rule.rewrite(site, view.function(site)) if hasattr(rule, "rewrite") else None
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast, runtime_checkable

from syncscope import discover
from syncscope.errors import UserError
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Hazard, Safety
from syncscope.model.ops import Family
from syncscope.rules._function import Function, Unfit
from syncscope.rules._view import View

__all__ = [
    "Example",
    "Family",
    "Function",
    "Rule",
    "Severity",
    "Unfit",
    "View",
    "builtin",
    "claims",
    "from_folder",
    "hazard",
    "installed",
    "sections",
]


MARK, ARROW = "  # !", "  # <-- here"  # of a line that must be flagged: in an example, and on a page


class Severity(Enum):
    """How much a finding in hot code matters."""

    WARNING = "warning"  # the host waits for all that is queued
    NOTE = "note"  # by design, or rarely dear: said once, with the switch that avoids it


@dataclass(frozen=True, slots=True)
class Example:
    """Code with `# !` on each line that must be flagged; no mark: it must stay silent.

    `fixed` is the code after the fix, without marks, and `safety` the fix's tier; both None where there is no fix. `inputs`
    describes the arguments with which the last function is run as written and as fixed, for instance
    `"x: float[n, c]; keep: bool[n]"` (the words are those of tests/rules/equivalence.py); "" where it cannot be run alone.
    `instead` is what to write where no fix can be made: shown on the rule's page, and run as a fix is.
    """

    code: str
    fixed: str | None = None
    safety: Safety | None = None
    inputs: str = ""
    instead: str | None = None


@runtime_checkable
class Rule(Protocol):
    """What a rule's module must hold. It may also hold `rewrite(site, function) -> Fix | None`, see `Rewriting`."""

    __name__: str
    __doc__: str | None
    FAMILY: Family
    SEVERITY: Severity
    OPS: tuple[str, ...]  # the `Site.op`s it claims; each belongs to one rule
    SEEN_AS: tuple[str, ...]  # the names under which a trace shows it
    EXAMPLES: tuple[Example, ...]

    def message(self, site: Site, view: View) -> str | None:
        """What is wrong, in the names of the user's own code; None where it is no hazard after all."""


class Rewriting(Rule, Protocol):
    """A rule that offers fixes."""

    def rewrite(self, site: Site, function: Function) -> Fix | None:
        """The fix for this site; sites that one fix mends together return equal fixes.

        Raises:
            Unfit: the code around it cannot be rewritten.
        """


def builtin() -> dict[str, Rule]:
    """The rules that come with syncscope, by name."""
    return {name: checked(name, module) for name, module in discover.discover(sys.modules[__name__]).items()}


def installed() -> dict[str, Rule]:
    """The rules that other packages bring by an entry point of the group `syncscope.rules`, by name."""
    found = {}
    for point in entry_points(group="syncscope.rules"):
        name = discover.slug(point.name)
        found[name] = checked(name, point.load())
    return found


def from_folder(folder: Path) -> dict[str, Rule]:
    """A user's own rules: every module in `folder` whose name does not begin with `_`, by name.

    Raises:
        UserError: the folder is not there, or a module in it is not a rule.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of rules", "name the folder that holds your rules' .py files")
    found = {}
    for path in sorted(folder.glob("[!_]*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except SyntaxError as error:
            raise UserError(f"{path}:{error.lineno}: {error.msg}", "a rule is a Python module") from error
        except Exception as error:  # whatever the user's own code raises
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            said = f"{path}:{lines[-1] if lines else 1}: {type(error).__name__}: {error}"
            raise UserError(said, "a rule is a Python module that can be imported") from error
        found[discover.slug(path.stem)] = checked(discover.slug(path.stem), module)
    return found


def checked(name: str, module: ModuleType) -> Rule:
    """The module as a rule.

    Raises:
        UserError: something of the contract is missing; the message names the file.
    """
    wanted = [*inspect.get_annotations(Rule), "message"]
    missing = [word for word in wanted if getattr(module, word, None) is None]
    if missing:
        raise UserError(
            f"{getattr(module, '__file__', name)}: the rule {name!r} has no {', '.join(missing)}",
            "syncscope/rules/__init__.py says what a rule holds",
        )
    return cast(Rule, module)


def claims(rules: Mapping[str, Rule]) -> dict[str, str]:
    """The name of the rule that claims each op.

    Raises:
        UserError: two rules claim the same op.
    """
    owner: dict[str, str] = {}
    for name, rule in rules.items():
        for op in rule.OPS:
            if op in owner:
                raise UserError(f"the rules {owner[op]!r} and {name!r} both claim {op!r}", "an op belongs to one rule")
            owner[op] = name
    return owner


def hazard(name: str, rule: Rule) -> Hazard:
    """What other rooms need to know of a rule; `seen_as` begins with the names that are most its own.

    Our recorder names a read as the inference names a site, torch's profiler by its operator, with or without `aten::`.
    """
    summary, _, prose = inspect.cleandoc(rule.__doc__ or "").partition("\n")
    short = (op.removeprefix("aten::") for op in rule.SEEN_AS)
    return Hazard(name, summary, prose.strip(), tuple(dict.fromkeys((*rule.OPS, *short, *rule.SEEN_AS))))


def sections(rule: Rule) -> dict[str, str]:
    """A rule's page: heading to Markdown, in order, beginning with the summary under "".

    A marked line of the example points to itself with an arrow.
    """
    summary, _, prose = inspect.cleandoc(rule.__doc__ or "").partition("\n")
    page, heading = {"": summary}, ""
    written: dict[str, list[str]] = {}
    for line in prose.strip().splitlines():
        if line in ("Why it waits", "What to do", "Fix safety"):
            heading = line
        elif set(line) != {"-"}:
            written.setdefault(heading, []).append(line)
    texts = {head: "\n".join(lines).strip() for head, lines in written.items()}
    page["Why it waits"] = "\n\n".join(filter(None, (texts.get(""), texts.get("Why it waits"))))
    if "What to do" in texts:
        page["What to do"] = texts["What to do"]
    found = [e for e in rule.EXAMPLES if MARK in e.code]
    shown = next((e for e in found if e.fixed), None) or next((e for e in found if e.instead), next(iter(found), None))
    if shown is not None:
        page["Example"] = f"```python\n{pointed(shown.code)}\n```"
        if instead := shown.fixed or shown.instead:
            page["Use instead"] = f"```python\n{inspect.cleandoc(instead)}\n```"
    if "Fix safety" in texts:
        page["Fix safety"] = texts["Fix safety"]
    return page


def pointed(code: str) -> str:
    """An example's code as a page shows it: an arrow where it has a mark."""
    return "\n".join(
        line.removesuffix(MARK) + ARROW if line.endswith(MARK) else line for line in inspect.cleandoc(code).splitlines()
    )
