"""`[tool.syncscope.lint]` of the nearest pyproject.toml, and what the command line says over it."""

from __future__ import annotations

import codecs
import difflib
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from syncscope import files
from syncscope.errors import UserError
from syncscope.linter import globs
from syncscope.linter.trust import is_trusted
from syncscope.model.finding import CONFIDENCE
from syncscope.project.folders import folder_around, located

LARGEST = 1 << 20  # bytes of a pyproject.toml
NEARLY = 0.75  # of what two names have in common, from which one is taken for the other, misspelt
LEAST = {word: CONFIDENCE.index(word) for word in CONFIDENCE}
"""What `--min-confidence` takes, and the lowest `Finding.confidence` that it lets through."""

BACKENDS = ("ocl",)
"""Those that have rules of their own."""

NOT_LINTED = "syntax-error"
BUILT_IN = (NOT_LINTED, "unused-allow")
"""What the engine itself reports; named like rules wherever rules are named."""


@dataclass(frozen=True, slots=True)
class Config:
    """How files of one folder are linted. Paths are absolute, patterns are those of .gitignore, relative to `root`."""

    root: str = ""
    file: str = ""  # the pyproject.toml that says so
    select: tuple[str, ...] = ()  # none: all rules
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    hot: tuple[str, ...] = ()  # functions that run in every step, though no step is here: `FILES`, or `FILES:FUNCTIONS`
    cold: tuple[str, ...] = ()  # functions that run in no step, said in the same way
    exclude: tuple[str, ...] = ()
    force_exclude: bool = False  # what is named is left out too
    rules: tuple[str, ...] = ()  # folders of the user's own rules, which may run
    refused: tuple[str, ...] = ()  # those that are named too, but may not: see `trust`
    min_confidence: str = "medium"
    all: bool = False
    # something else says what waits in a step, as a recording does: each fix is what was asked for
    measured: bool = False
    backend: str = ""
    baseline: str = ""
    respect_gitignore: bool = True
    src: tuple[str, ...] = ()  # where the project's own imports are looked up

    def wants(self, rule: str, families: Callable[[str], str] = lambda _: "") -> bool:
        """Whether this rule is on; names may be those of whole families, and ALL. What says that a file was not linted is on
        whatever is selected: of such a file no rule knows anything."""
        selected = not self.select or rule == NOT_LINTED or names_one(self.select, rule, families)
        return selected and not names_one(self.ignore, rule, families)

    def asks(self, rule: str, path: str, families: Callable[[str], str]) -> bool:
        """Whether this rule is on in this file."""
        return self.wants(rule, families) and not names_one(self.ignored_in(path), rule, families)

    def ignored_in(self, path: str) -> frozenset[str]:
        """What `per-file-ignores` turns off in this file, as it is written there: rules, families, ALL."""
        if not self.per_file_ignores:
            return frozenset()
        relative = os.path.relpath(located(path), self.root or os.curdir)
        return frozenset(r for pattern, off in self.per_file_ignores if matches(pattern, relative) for r in off)


def names_function(patterns: Collection[str], root: str, path: str, function: str) -> bool:
    """Whether `hot` or `cold`, below its root, says it of a function, by its dotted name or by the last part of it."""
    if not patterns:
        return False
    relative = os.path.relpath(located(path), root or os.curdir)
    names = (function, function.rpartition(".")[2])
    said = (pattern.rpartition(":") if ":" in pattern else (pattern, ":", "*") for pattern in patterns)
    return any(matches(at, relative) and any(fnmatchcase(name, which) for name in names) for at, _, which in said)


def names_one(names: Collection[str], rule: str, families: Callable[[str], str]) -> bool:
    """Whether a rule is among these names, by its own, its family's, or ALL."""
    return bool(names) and not ({rule, families(rule), "ALL"} - {""}).isdisjoint(names)


KEYS = {f.name.replace("_", "-"): f for f in fields(Config) if f.name not in ("root", "file", "refused", "measured")}


@cache
def _pattern(line: str) -> globs.Pattern | None:
    return globs.pattern(line.encode("utf-8", "surrogateescape"))


def matches(pattern: str, relative: str, is_folder: bool = False) -> bool:
    """Whether a path, or a folder above it, matches a pattern as .gitignore would have it."""
    known, path = _pattern(pattern), os.fsencode(relative.replace(os.sep, "/"))
    if known is None or known.keeps:
        return False
    while path and not known.matches(path, is_folder):
        path, is_folder = path.rpartition(b"/")[0], True
    return bool(path)


def overlay(config: Config, **said: Any) -> Config:
    """The configuration with what the command line said; None is nothing said, `ignore` and `rules` add."""
    changes = {key: value for key, value in said.items() if value is not None}
    changes["ignore"] = (*config.ignore, *changes.get("ignore", ()))
    named = tuple(map(os.path.abspath, changes.get("rules", ())))  # the user's own word
    changes["rules"] = tuple(dict.fromkeys((*config.rules, *named)))
    changes["refused"] = tuple(folder for folder in config.refused if folder not in named)
    return replace(config, **changes)


@dataclass
class Configs:
    """The configuration of any file: the nearest pyproject.toml that has our table, or the one that was named."""

    named: str = ""
    isolated: bool = False
    _by_folder: dict[str, Config] = field(default_factory=dict)

    def of(self, path: str) -> Config:
        """The configuration for this file, or for the files of this folder.

        Raises:
            UserError: a table that cannot be read.
        """
        return self.of_folder(located(path) if os.path.isdir(path) else folder_around(path))

    def of_folder(self, folder: str) -> Config:
        """The configuration for files of this folder (an absolute path)."""
        if folder not in self._by_folder:
            self._by_folder[folder] = self._find(folder)
        return self._by_folder[folder]

    def _find(self, folder: str) -> Config:
        if self.isolated:
            return Config(root=os.getcwd())
        if self.named:
            return read(self.named, required=True) or Config()
        found = read(os.path.join(folder, "pyproject.toml"))
        if found:
            return found
        parent = os.path.dirname(folder)
        return self.of_folder(parent) if parent != folder else Config(root=os.getcwd())


@cache
def read(path: str, required: bool = False) -> Config | None:
    """The table in this file, if it has one.

    Raises:
        UserError: no TOML, an unknown key, a value of the wrong type.
    """
    try:
        raw = files.regular(path, LARGEST)
    except OSError as error:
        if required:
            raise UserError(f"cannot read {path}: {error.strerror}", "name a pyproject.toml with --config") from None
        return None
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UserError(f"{shown(path)} is UTF-16, and TOML is UTF-8", "save it as UTF-8, or pass --isolated")
    if b"syncscope" not in raw:
        return Config(root=folder_around(path)) if required else None
    import tomllib

    try:
        table: Any = tomllib.loads(raw.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{shown(path)}: {error}", "mend the TOML, or pass --isolated to go without it") from None
    except RecursionError:
        raise UserError(
            f"{shown(path)}: its TOML is nested too deeply", "mend the TOML, or pass --isolated to go without it"
        ) from None
    for key in ("tool", "syncscope", "lint"):
        table = table.get(key) if isinstance(table, Mapping) else None
        if (
            key == "syncscope"
            and isinstance(table, Mapping)
            and (strange := next((k for k in table if k != "lint"), ""))
        ):
            where = f"{shown(path)}:{line_of(strange, raw.decode())}"
            raise UserError(
                f"{where}: unknown key {strange!r} in [tool.syncscope]", "the table is [tool.syncscope.lint]"
            )
    if table is None:
        return Config(root=folder_around(path)) if required else None
    config = parsed(table, path, raw.decode())
    for folder in config.rules:
        if not os.path.isdir(folder):
            at = f"{shown(path)}:{line_of('rules', raw.decode())}"
            raise UserError(f"{at}: no such folder of rules: {shown(folder)}", "it is looked for beside this file")
    may = tuple(filter(is_trusted, config.rules))
    return replace(config, rules=may, refused=tuple(folder for folder in config.rules if folder not in may))


def parsed(table: Any, path: str, text: str) -> Config:
    """The table as a `Config`; every key and type is looked at."""
    root = folder_around(path)
    if not isinstance(table, Mapping):
        raise UserError(
            f"{shown(path)}: tool.syncscope.lint is not a table", "write [tool.syncscope.lint] above its keys"
        )
    values: dict[str, Any] = {"root": root, "file": path}
    for key, value in table.items():
        where = f"{shown(path)}:{line_of(key, text)}"
        if key not in KEYS:
            near = difflib.get_close_matches(key.replace("_", "-"), KEYS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys are: {', '.join(KEYS)}"
            raise UserError(f"{where}: unknown key {key!r} in [tool.syncscope.lint]", hint)
        name = KEYS[key].name
        values[name] = typed(name, value, where)
        patterns = [*value] if name in ("exclude", "per_file_ignores") else ()
        if name in ("hot", "cold"):
            patterns = [each.rpartition(":")[0] or each for each in value]
        for pattern in patterns:
            if not is_pattern(pattern):
                raise UserError(f"{where}: {key}: {pattern!r} is no pattern", "they are those of .gitignore")
    for name in ("rules", "src"):
        values[name] = tuple(os.path.normpath(os.path.join(root, p)) for p in values.get(name, ()))
    if values.get("baseline"):
        values["baseline"] = os.path.normpath(os.path.join(root, values["baseline"]))
    return Config(**values)


def typed(name: str, value: Any, where: str) -> Any:
    """The value of a key as the field of that name holds it."""
    key = name.replace("_", "-")
    if name == "per_file_ignores":
        if not isinstance(value, Mapping) or not all(is_texts(v) for v in value.values()):
            raise UserError(
                f"{where}: {key} maps patterns to lists of rules", f'for example {key} = {{"tests/**" = ["host-read"]}}'
            )
        return tuple((pattern, tuple(rules)) for pattern, rules in value.items())
    if name == "backend" and value not in BACKENDS:
        raise UserError(f"{where}: {key} is one of {', '.join(BACKENDS)}, not {value!r}", "leave it out for all others")
    if name == "min_confidence" and value not in LEAST:
        near = difflib.get_close_matches(str(value), LEAST, 1)
        raise UserError(f"{where}: {key} is one of {', '.join(LEAST)}", f"did you mean {near[0]!r}?" if near else "")
    if isinstance(KEYS[key].default, bool):
        if not isinstance(value, bool):
            raise UserError(f"{where}: {key} is true or false, not {value!r}")
        return value
    if isinstance(KEYS[key].default, str):
        if not isinstance(value, str):
            raise UserError(f"{where}: {key} is a string, not {value!r}")
        return value
    if not is_texts(value):
        raise UserError(f"{where}: {key} is a list of strings, not {value!r}", f'for example {key} = ["..."]')
    return tuple(value)


def is_pattern(pattern: str) -> bool:
    """Whether .gitignore would understand it."""
    return _pattern(pattern) is not None


def is_texts(value: Any) -> bool:
    """Whether it is a list of strings."""
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def line_of(key: str, text: str) -> int:
    """The line on which a key of our table stands, as near as can be told."""
    table = text.find("[tool.syncscope")
    word = re.escape(key)
    found = re.compile(rf"^[ \t]*(?:lint\.)?[\"']?{word}[\"']?\s*=|^\[tool\.syncscope\.lint\.{word}\]", re.MULTILINE)
    match = found.search(text, max(table, 0))
    return text.count("\n", 0, match.start() if match else max(table, 0)) + 1


def said_at(name: str, config: Config) -> str:
    """`pyproject.toml:7: ` where the configuration's file names this rule; nothing where only the command line can have."""
    try:
        with open(config.file, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return ""
    found = re.compile(rf"[\"']{re.escape(name)}[\"']").search(text, max(text.find("[tool.syncscope"), 0))
    return f"{shown(config.file)}:{text.count(chr(10), 0, found.start()) + 1}: " if found else ""


def nowhere(config: Config) -> list[str]:
    """A line for each folder of `src`, and each pattern of the other keys that name files, that is not there: it is misspelt or
    moved. A mere name, as `build`, need not be there, unless something beside the table is called nearly so."""
    found = []
    for folder in config.src:
        if not os.path.isdir(folder):
            name = os.path.relpath(folder, config.root or os.curdir)
            found.append(f"{said_at(name, config)}src has {name!r}, and there is no such folder")
    given = [("per-file-ignores", pattern) for pattern, _ in config.per_file_ignores]
    given += [(key, p.partition(":")[0]) for key, said in (("hot", config.hot), ("cold", config.cold)) for p in said]
    for key, pattern in (*given, *(("exclude", pattern) for pattern in config.exclude)):
        plain = re.match(r"[^*?\[\\]*", pattern)
        named = plain[0] if plain else ""
        named = named if named == pattern else named.rpartition("/")[0]
        name = named.strip("/")
        if not name or os.path.lexists(os.path.join(config.root, name)):
            continue
        if "/" in pattern.rstrip("/"):
            found.append(f"{said_at(pattern, config)}{key} has {pattern!r}, and there is no {named}")
        elif near := difflib.get_close_matches(name, _beside(config), 1, NEARLY):
            found.append(f"{said_at(pattern, config)}{key} has {pattern!r}: did you mean {near[0]!r}?")
    return found


def _beside(config: Config) -> list[str]:
    """What lies in the folder of the table."""
    try:
        return sorted(os.listdir(config.root or os.curdir))
    except OSError:
        return []


def shown(path: str) -> str:
    """A path as messages name it: from here where it is below."""
    here = os.path.relpath(path)
    return path if here.startswith(os.pardir) else here
