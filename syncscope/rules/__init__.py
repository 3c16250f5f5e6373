"""One hazard, one file: prose, which sites it claims, examples, and the names of the rewrites that may mend it.

A rule is a module. Its name is its file's name (`boolean_mask_read.py` is `boolean-mask-read`), its docstring its page:
a summary line, then the sections "Why it waits", "What to do" where that needs words, "When a fix pays" and "Fix safety"; the
sections "Example" and "Use instead" are made of its examples. The rest is in `Rule`. A user's own rules are the same kind of
module in a folder of theirs (`from_folder`) or behind an entry point of the group `syncscope.rules` (`installed`).

A linter asks like this; libcst and the rewrites are imported in the last line only, where a fix is built:

    view = View(code, sites)                      # once a file
    for name in claims(rules)[site.op]:
        said = rules[name].message(site, view)    # None: not a hazard after all
        fix = mended(rules[name], site, view.function(site))
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping
from enum import EnumType
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.metadata import PackageNotFoundError, entry_points, metadata
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from syncscope import discover, rewrites
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import around, seen
from syncscope.codemod.text import CannotRewrite
from syncscope.codemod.view import View
from syncscope.discover import did_you_mean
from syncscope.errors import UserError
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Fix, Hazard, Safety, Severity
from syncscope.model.ops import Family, Op

if TYPE_CHECKING:
    from syncscope.codemod.draft import Draft

__all__ = [
    "ASKED",
    "CannotRewrite",
    "Edit",
    "Example",
    "Family",
    "Fix",
    "Function",
    "Op",
    "Paged",
    "Rule",
    "Safety",
    "Severity",
    "Site",
    "View",
    "around",
    "builtin",
    "claims",
    "examples",
    "family",
    "from_folder",
    "hazard",
    "installed",
    "is_ours",
    "mended",
    "new_draft",
    "sections",
    "seen",
]


ASKED = rewrites.ASKED  # what the rewrites were asked, and for how long
ARROW = "<-- here"  # of a line that must be flagged, on a page
HEADINGS = ("What happens", "Why it waits", "What to do", "When a fix pays", "Fix safety")  # of a page, in order


class Paged(Protocol):
    """What has a page: a rule of Python, or one of OpenCL C (`syncscope.opencl_c`), which holds its FAMILY."""

    __name__: str
    __doc__: str | None
    SEVERITY: Severity
    SEEN_AS: tuple[str, ...]  # the names under which a trace shows it, beside those of its ops; () where it has none
    EXAMPLES: tuple[Example, ...]  # those of its rewrites come on top, see `examples`


@runtime_checkable
class Rule(Paged, Protocol):
    """What a rule's module must hold. It may also hold what `Mendable` has."""

    OPS: tuple[str, ...]  # the waits of `model.ops.Op` that it claims, or their names; others may claim them too

    def message(self, site: Site, view: View) -> str | None:
        """What is wrong, in the names of the user's own code; None where it is no hazard after all."""


class Mendable(Rule, Protocol):
    """What a rule that offers fixes holds of these three."""

    REWRITES: tuple[str, ...]  # files of syncscope/rewrites, in the order in which they are tried

    def certain(self, site: Site, function: Function) -> bool:
        """Whether a site is known well enough to change code; without it, one that is no guess is: see `certain`."""

    def rewrite(self, site: Site, function: Function) -> Fix | None:
        """A rewrite of a user's own rule, as in syncscope/rewrites but beside the rule: tried last.

        Raises:
            CannotRewrite: the code around it cannot be rewritten.
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


def from_folder(folder: Path, broken: list[UserError] | None = None) -> dict[str, Rule]:
    """A user's own rules: every module in `folder` whose name does not begin with `_`, by name.

    Raises:
        UserError: the folder is not there, or, unless `broken` takes the errors, a module in it is not a rule.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of rules", "name the folder that holds your rules' .py files")
    found = {}
    for path in sorted(folder.glob("[!_]*.py")):
        try:
            found[discover.slug(path.stem)] = _from_file(path)
        except UserError as error:
            if broken is None:
                raise
            broken.append(error)
    return found


def _from_file(path: Path) -> Rule:
    spec = importlib.util.spec_from_file_location(path.stem, path, loader=_FromSource(path.stem, str(path)))
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
        raise UserError(said, _choices(error) or "a rule is a Python module that can be imported") from error
    return checked(discover.slug(path.stem), module)


def _choices(error: Exception) -> str:
    """What could have been meant where one of our words does not exist: `Severity.ERROR`, `Op.ITEMS`."""
    words = getattr(error, "obj", None)
    if not (isinstance(error, AttributeError) and isinstance(words, EnumType)):
        return ""
    return did_you_mean(error.name or "", [*words.__members__], "`syncscope test-rules --ops` lists them all")


class _FromSource(SourceFileLoader):
    """Runs what the file says: bytecode beside it may be another's, and none is written."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def checked(name: str, module: ModuleType) -> Rule:
    """The module as a rule.

    Raises:
        UserError: something of the contract is missing; the message names the file.
    """
    file = getattr(module, "__file__", name)
    vars(module).setdefault("SEEN_AS", ())  # what its ops are called, see `hazard`
    wanted = [*inspect.get_annotations(Paged), *inspect.get_annotations(Rule), "message"]
    missing = [word for word in wanted if getattr(module, word, None) is None]
    if missing:
        raise UserError(
            f"{file}: the rule {name!r} has no {', '.join(missing)}",
            "syncscope/rules/__init__.py says what a rule holds",
        )
    rule = cast(Rule, module)
    if not isinstance(rule.SEVERITY, Severity):
        raise UserError(
            f"{file}: SEVERITY of the rule {name!r} is {rule.SEVERITY!r}", f"it is {' or '.join(map(str, Severity))}"
        )
    if not rule.OPS or not isinstance(rule.OPS, (tuple, list)):
        raise UserError(f"{file}: OPS of the rule {name!r} names no wait", 'it is a tuple, of one: OPS = ("item",)')
    for op in rule.OPS:
        if op not in list(Op):
            listed = "`syncscope test-rules --ops` lists them all"
            raise UserError(f"{file}: OPS has {op!r}, which is no wait", did_you_mean(str(op), [*map(str, Op)], listed))
    return rule


def is_ours(rule: Paged) -> bool:
    """Whether a rule comes with syncscope."""
    return rule.__name__.startswith(f"{__name__}.")


def family(rule: Paged) -> Family:
    """What the host waits for where this rule speaks: the family of its ops, which are of one; or the one that it names."""
    named: Family | None = getattr(rule, "FAMILY", None)
    return named or next(op.family for op in Op if op == cast(Rule, rule).OPS[0])


def claims(rules: Mapping[str, Rule]) -> dict[str, tuple[str, ...]]:
    """The names of the rules that claim each op, in the order of `rules`: each says what it has to say."""
    found: dict[str, tuple[str, ...]] = {}
    for name, rule in rules.items():
        for op in rule.OPS:
            found[op] = (*found.get(op, ()), name)
    return found


def certain(site: Site, function: Function) -> bool:
    """Whether a site is known well enough to change code, where its rule does not say: a guess is no ground for it."""
    return site.confidence >= 2


def mended(rule: Rule, site: Site, function: Function, compiles: bool = False) -> Fix | None:
    """The fix that a rule offers for a site; with `compiles`, one that stands in a function which is compiled whole.

    Raises:
        CannotRewrite: the code around it cannot be rewritten.
    """
    own = getattr(rule, "rewrite", None)
    if not getattr(rule, "certain", certain)(site, function):
        return function.declines(site.node, "by the code alone it is not sure that it waits")
    fix = rewrites.first(getattr(rule, "REWRITES", ()), site, function, compiles)
    return own(site, function) if fix is None and own is not None and not compiles else fix


def new_draft(function: Function) -> Draft:
    """A set of edits of a function, for the `rewrite` of a user's own rule: libcst is imported here, not with the rule."""
    from syncscope.codemod.draft import Draft

    return Draft(function)


def examples(name: str, rule: Paged) -> tuple[Example, ...]:
    """What shows, specifies and tests a rule: its own examples, and those of its rewrites that are of this rule."""
    listed = (rewrites.named(each) for each in getattr(rule, "REWRITES", ()))
    return (*rule.EXAMPLES, *(e for each in listed for e in each.EXAMPLES if e.rule in ("", name)))


def hazard(name: str, rule: Paged) -> Hazard:
    """What other rooms need to know of a rule; `seen_as` begins with the names that are most its own.

    Our recorder names a read as the inference names a site, torch's profiler by its operator, with or without `aten::`.
    """
    summary, _, prose = inspect.cleandoc(rule.__doc__ or "").partition("\n")
    short = (op.removeprefix("aten::") for op in rule.SEEN_AS)
    seen_as = tuple(dict.fromkeys((*getattr(rule, "OPS", ()), *short, *rule.SEEN_AS)))
    return Hazard(name, summary, prose.strip(), seen_as, address(name) if is_ours(rule) else "")


@cache
def documentation() -> str:
    """Where the pages of docs/ stand, as the metadata of the package says; "" where it says nothing."""
    try:
        said = metadata("syncscope").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    urls = (url.strip() for label, _, url in (each.partition(",") for each in said) if label == "Documentation")
    return next(urls, "").rstrip("/")


def address(name: str) -> str:
    """The address of the page of a rule that comes with syncscope; "" where its documentation has none."""
    return f"{documentation()}/rules.md#{name}" if documentation() else ""


def page_address(name: str, rule: Paged) -> str:
    """Where an editor finds the page of a rule: in the documentation, else in the rule's own file, which begins with it."""
    known = hazard(name, rule).address
    file = getattr(rule, "__file__", None)
    return known or (Path(file).absolute().as_uri() if file else "")


def sections(name: str, rule: Paged) -> dict[str, str]:
    """A rule's page: heading to Markdown, in order, beginning with the summary under "".

    A marked line of the example points to itself with an arrow.
    """
    summary, _, prose = inspect.cleandoc(rule.__doc__ or "").partition("\n")
    page, heading = {"": summary}, ""
    written: dict[str, list[str]] = {}
    for line in prose.strip().splitlines():
        if line in HEADINGS:
            heading = line
        elif set(line) != {"-"}:
            written.setdefault(heading, []).append(line)
    texts = {head: "\n".join(lines).strip() for head, lines in written.items()}
    first = next(head for head in HEADINGS if head in texts or head == "Why it waits")
    page[first] = "\n\n".join(filter(None, (texts.get(""), texts.get(first))))
    page |= {head: texts[head] for head in HEADINGS[2:-1] if head in texts}
    found = [e for e in examples(name, rule) if e.mark in e.code]
    shown = next((e for e in found if e.fixed), None) or next((e for e in found if e.instead), next(iter(found), None))
    if shown is not None:
        page["Example"] = f"```{shown.language}\n{pointed(shown)}\n```"
        if instead := shown.fixed or shown.instead:
            page["Use instead"] = f"```{shown.language}\n{inspect.cleandoc(instead)}\n```"
    if "Fix safety" in texts:
        page["Fix safety"] = texts["Fix safety"]
    return page


def pointed(example: Example) -> str:
    """An example's code as a page shows it: an arrow where it has a mark."""
    mark, arrow = example.mark, example.mark.replace("!", ARROW)
    return "\n".join(
        line.removesuffix(mark) + arrow if line.endswith(mark) else line
        for line in inspect.cleandoc(example.code).splitlines()
    )
