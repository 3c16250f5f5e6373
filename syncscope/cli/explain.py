"""`syncscope explain`: what a rule means, why it makes the host wait, and the rewrite."""

from __future__ import annotations

import difflib
import inspect
import sys
from typing import TYPE_CHECKING

import click

from syncscope.cli import _completion
from syncscope.cli._console import echo
from syncscope.errors import UserError
from syncscope.model.words import visible

if TYPE_CHECKING:
    from syncscope.rules import Example, Paged

BUILT_IN = {
    "syntax-error": "A file or a notebook's cell that mentions torch and cannot be parsed; the others are linted all the same.",
    "unused-allow": "A `# syncscope: allow[...]` that silences nothing; --fix takes it away.",
}

FEW = 2  # pages that are shown whole, one after the other

INTRODUCTION = """# Rules

Made by `syncscope explain --all`; edit the rules, not this page.

A name may be given to `--select`, `--ignore` and `# syncscope: allow[name] reason`; so may a family.
"""


@click.command(short_help="What a rule means, and its rewrite.")
@click.argument("name", required=False, shell_complete=_completion.rules)
@click.option("--all", "everything", is_flag=True, help="Every rule, as one Markdown page.")
def command(name: str | None, everything: bool) -> int:
    """Explain a rule: what it sees, why the host waits there, examples, and the rewrite as a diff.

    \b
    syncscope explain                 the names of all rules
    syncscope explain host-read       one rule
    syncscope explain copy            the rules of a family
    syncscope explain mask_read       the rule of what a table calls so
    syncscope explain --all           all of them, as Markdown: docs/rules.md
    """
    from syncscope import discover
    from syncscope.linter.config import Configs
    from syncscope.linter.rulesets import pages, slug
    from syncscope.linter.trust import refused

    if everything and name:
        raise UserError(f"--all is every rule, and not {name!r} alone", "choose one")
    config = Configs().of("x.py")
    for line in refused(config.refused):
        echo(visible(line), err=True)
    rules = pages(config.rules)
    families = {slug(family, rules): members for family, members in by_family(rules).items()}
    if everything:
        echo(reference(rules), nl=False)
    elif name is None:
        echo(listing(rules), nl=False)
    elif name in families:
        echo(listing({rule: rules[rule] for rule in families[name]}).partition("\n\n")[0])
    elif name in BUILT_IN:
        echo(BUILT_IN[name])
    elif len(shown := [name] if name in rules else seen_as(name, rules)) > FEW:
        echo(listing({rule: rules[rule] for rule in shown}).partition("\n\nengine:")[0])
    elif shown:
        text = "\n".join(page(rule, rules[rule], level=1) for rule in shown)
        if sys.stdout.isatty():
            from rich.markdown import Markdown

            from syncscope.cli._console import console

            console().print(Markdown(text))
        else:
            echo(text, nl=False)
    else:
        raise UserError(
            f"no rule is called {name!r}",
            discover.did_you_mean(name, sorted({*rules, *families, *BUILT_IN}), "`syncscope explain` lists them all"),
        )
    return 0


def seen_as(word: str, rules: dict[str, Paged]) -> list[str]:
    """The rules that speak of a wait by the word under which a table or a trace has it, `mask_read`, `bool`. A name
    that is most a rule's own leads to it alone.
    """
    from syncscope.rules import hazard

    known = {name: hazard(name, rule).seen_as for name, rule in rules.items()}
    first = [name for name, words in known.items() if words[:1] == (word,)]
    return first or [name for name, words in known.items() if word in words]


def listing(rules: dict[str, Paged]) -> str:
    """Every rule's name and summary, by family."""
    lines = []
    wide = max(map(len, rules))
    for family, members in by_family(rules).items():
        lines += [f"{family}:", *(f"  {name:{wide}}  {summary(rules[name])}" for name in members), ""]
    return "\n".join([*lines, "engine:", *(f"  {name:{wide}}  {said}" for name, said in BUILT_IN.items()), ""])


def reference(rules: dict[str, Paged]) -> str:
    """All rules as one Markdown page."""
    from syncscope.linter.rulesets import slug

    pieces = [INTRODUCTION]
    for family, members in by_family(rules).items():
        pieces.append(f"\n## {family.capitalize()} (`{slug(family, rules)}`)\n\n")
        pieces.append("| rule | what | fix |\n| --- | --- | --- |\n")
        pieces += [f"| [{name}](#{name}) | {summary(rules[name])} | {tiers(name, rules[name])} |\n" for name in members]
        pieces += ["\n" + page(name, rules[name], level=3) for name in members]
    rows = "".join(f"| {name} | {said} |\n" for name, said in BUILT_IN.items())
    return "".join([*pieces, f"\n## Of the engine\n\n| name | what |\n| --- | --- |\n{rows}"])


def by_family(rules: dict[str, Paged]) -> dict[str, list[str]]:
    """The rules' names by family, families in their own order."""
    from syncscope.rules import Family, family

    found = {each.value: sorted(n for n, rule in rules.items() if family(rule) is each) for each in Family}
    return {each: members for each, members in found.items() if members}


def summary(rule: Paged) -> str:
    """The first line of a rule's page."""
    return inspect.cleandoc(rule.__doc__ or "").partition("\n")[0]


def tiers(name: str, rule: Paged) -> str:
    """The safeties of the fixes that a rule's examples show; "by hand" where they only say what to write."""
    from syncscope.rules import examples

    shown = examples(name, rule)
    by_hand = "by hand" if any(e.instead for e in shown) else "none"
    return ", ".join(sorted({e.safety.value for e in shown if e.safety})) or by_hand


def page(name: str, rule: Paged, level: int) -> str:
    """A rule's page as Markdown."""
    from syncscope.rules import examples, sections

    hashes = "#" * level
    pieces = [f"{hashes} {name}\n"]
    every = examples(name, rule)
    shown = next((e for e in every if e.fixed), None) or next((e for e in every if e.instead), None)
    for heading, text in sections(name, rule).items():
        if heading == "Use instead":
            continue
        pieces.append(f"\n{hashes}# {heading}\n\n{text}\n" if heading else f"\n{text}\n")
        if heading == "Example" and shown is not None:
            pieces.append(f"\n{first_change(shown)}")
    if others := further(name, rule, [shown] if shown is not None else []):
        pieces.append(f"\n{hashes}# More rewrites\n{others}")
    if rule.SEEN_AS:
        seen = ", ".join(f"`{op}`" for op in rule.SEEN_AS)
        pieces.append(f"\nIn a trace: {seen}\n")
    return "".join(pieces)


def first_change(shown: Example) -> str:
    """The example of a page, as a diff of all of it."""
    head = f"The fix ({shown.safety.value}):" if shown.safety is not None else "By hand:"
    return f"{head}\n\n{difference(shown, around=99)}"


def further(name: str, rule: Paged, shown: list[Example]) -> str:
    """One example of each other rewrite: what the linter says of it, and the lines that change."""
    from syncscope.linter.examples import fixes_of
    from syncscope.rules import examples

    pieces: dict[str, str] = {}
    for example in examples(name, rule):
        fix = next(iter(fixes_of(name, example)), None) if example.safety is not None else None
        if example.fixed is None and fix is not None:
            fix = fix.also
        if example.safety is not None:
            if fix is None:  # a rule of the user's own, whose examples do not hold
                continue
            title, changes = fix.title[:1].upper() + fix.title[1:], f": {fix.words}" if fix.words else ""
            told = f"\n{title} ({fix.safety.value}){changes}.\n\n{difference(example, around=1)}"
        elif example.instead is not None:
            title, told = example.code, f"\nBy hand:\n\n{difference(example, around=1)}"
        else:
            continue
        if example in shown:
            told = ""
        pieces.setdefault(title, told)
    return "".join(pieces.values())


def difference(example: Example, around: int) -> str:
    """An example before and after, as a diff with so many lines around each change."""
    texts = (example.code.replace(example.mark, ""), example.fixed or example.instead or "")
    before, after = (inspect.cleandoc(text).splitlines() for text in texts)
    rows = [r for r in difflib.unified_diff(before, after, lineterm="", n=around) if not r.startswith(("---", "+++"))]
    rows = ["..." if r.startswith("@@") else r for r in rows[1:]]
    return "```diff\n" + "\n".join(rows) + "\n```\n"
