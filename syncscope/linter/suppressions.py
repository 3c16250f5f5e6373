"""`# syncscope: allow[rule] reason` and `# noqa`: findings that somebody looked at and lets stand.

A comment at the end of a line speaks of the logical line that it belongs to (a statement over all its lines, the head of a
compound one); on a line of its own, of the next.
`# noqa: item-read` silences one rule; `# noqa` all of them, but only where it begins the comment or stands behind words for
other tools, and behind code: prose that ends in one is meant for them, and one on a line of its own speaks of that line.
Unused `allow` comments are reported.
"""

from __future__ import annotations

import io
import re
import textwrap
import tokenize
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from syncscope.linter.config import names_one
from syncscope.linter.source import SourceFile
from syncscope.model.finding import Edit, Finding, Fix, Safety
from syncscope.model.source import Span

ALLOW = re.compile(r"#\s*syncscope:\s*allow(?![\w-])(?:\s*\[(?P<rules>[^\]#]*)\])?(?P<reason>[^#]*)")
STRANGE = re.compile(
    r"#\s*syncscope:\s*(?P<word>(?!allow(?![\w-]))[A-Za-z][\w-]*)\s*(?:\[(?P<rules>[^\]#]*)\]|(?=#|$))"
)
"""What is written as an `allow`, and says another word: prose goes on behind its first."""
OTHER_BRACKETS = re.compile(
    r"(?:\s*(?P<square>\[)|(?P<round>[({<])|\s*:)?\s*(?P<names>[\w-]+(?:\s*,\s*[\w-]+)*)?\s*[)}>\]]?"
)
"""What stands behind an `allow` whose square brackets are missing, or do not close."""
NOQA = re.compile(r"#\s*noqa(?P<rules>[ \t]*:[ \t]*[\w-]+(?:[ \t,]+[\w-]+)*)?", re.IGNORECASE)
FOR_TOOLS = re.compile(  # what may stand before a bare `noqa` in its comment
    r"(#\s*(type:|noqa|pylint:|pragma:|pyright:|mypy:|ruff:|fmt:|isort:|nosec|syncscope:)[^#]*)*", re.IGNORECASE
)
WRITTEN = re.compile(rb"\S")
HEADS = {"else:", "finally:", "try:"}
LONGEST = len("finally:")
LAYOUT = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}


CONTINUED = "#   "
"""How a reason goes on in the next line, that goes with it."""
GOES_ON = re.compile(rb"[ \t]*#   (?! )[^\r\n]*(?:\r?\n|$)")

NO_RULE = frozenset({""})
"""What `allow[]` names: it speaks of no rule, and not of every one."""


@dataclass(frozen=True, slots=True)
class Comment:
    """One suppression: the lines of code it speaks of, the rules it names (none: all of them), where it stands."""

    first: int
    last: int
    rules: frozenset[str]
    span: Span
    ours: bool  # an `allow`: we may call it unused
    strange: str = ""  # what stands in place of an `allow`: then it silences nothing
    meant: str = "allow"  # and what was meant by it


def ours(code: bytes) -> bool:
    """Whether there may be an `allow` in it: a file of suppressions and nothing else is looked at too."""
    return b"syncscope:" in code


def comments(source: SourceFile, rules: Collection[str] | None = None, known: Collection[str] = ()) -> list[Comment]:
    """The suppressions of a file. It is tokenised only where its text looks as if there were an `allow`, or a `noqa` for one of
    these rules; None: for any. `known` are the names that want brackets behind an `allow`."""
    code = source.code
    if b"syncscope:" not in code and not _silences(code.decode(), rules):
        return []
    lines, written = logical_lines(code)
    found = []
    for text, (line, column), number in written:
        row = source.starts[line - 1]
        stop = code.find(b"\n", row)
        comment = row + len(code[row : stop if stop >= 0 else len(code)].decode()[:column].encode())
        for pattern, ours in ((ALLOW, True), (STRANGE, True), (NOQA, False)):
            start, before = comment, 0
            for match in pattern.finditer(text):
                start += len(text[before : match.start()].encode())
                before = match.start()
                bare = not ours and not match["rules"]
                if bare and (not code[row:comment].strip() or not FOR_TOOLS.fullmatch(text, 0, before)):
                    continue
                end = start + len(match[0].rstrip().encode())
                first, last = lines[number] if number < len(lines) else (line, line)
                said = (match["word"], "allow") if pattern is STRANGE else ("", "allow")
                if pattern is ALLOW and match["rules"] is None:
                    said = unbracketed(text[match.start() : match.end()].partition("allow")[2], known)
                found.append(Comment(min(first, line), last, _named(match), Span(start, end), ours, *said))
    return found


def unbracketed(behind: str, known: Collection[str]) -> tuple[str, str]:
    """An `allow` that names rules without square brackets around them, by what stands behind it, and what it means; of any
    other ("", "allow"). It would be heard as one of every rule, with the names for its reason."""
    match = OTHER_BRACKETS.match(behind)
    assert match is not None
    names = re.findall(r"[\w-]+", match["names"] or "")
    of_rules = [*takewhile(known.__contains__, names)]
    if not (of_rules or match["square"] or match["round"]):
        return "", "allow"
    meant = names if match["round"] else of_rules or names[:1]
    end = match.end() if meant == names else behind.index(meant[-1]) + len(meant[-1])
    return f"allow{behind[:end].rstrip()}", f"allow[{', '.join(meant)}]" if meant else "allow"


def _silences(text: str, rules: Collection[str] | None) -> bool:
    """Whether something that is written as a `noqa` names one of these rules, or none and so all: most name those of others."""
    if rules is None:
        return NOQA.search(text) is not None
    return bool(rules) and any(not (n := _named(m)) or not n.isdisjoint(rules) for m in NOQA.finditer(text))


def _named(match: re.Match[str]) -> frozenset[str]:
    """The rules that a suppression names."""
    return named(match["rules"])


def named(listed: str | None) -> frozenset[str]:
    """The rules that are listed; `NO_RULE` where brackets are there and hold none."""
    return frozenset(re.findall(r"[\w-]+", listed or "")) or (frozenset() if listed is None else NO_RULE)


def logical_lines(code: bytes) -> tuple[list[tuple[int, int]], list[tuple[str, tuple[int, int], int]]]:
    """The first and last line of each logical line: a simple statement, or the head of a compound one; and the comments of the
    file, each with its place and the number of the logical line it speaks of.

    That is the one it ends or stands in; on a line of its own it is the next that is more than `else:`.
    """
    lines: list[tuple[int, int]] = []
    written: list[tuple[str, tuple[int, int], int]] = []
    above: list[tuple[str, tuple[int, int]]] = []  # comments on lines of their own, whose line has not come yet
    first, last, words = 0, 0, ""
    for token in tokens(code):
        if token.type not in LAYOUT:
            last = token.start[0]
        if token.type == tokenize.COMMENT:
            if first:
                written.append((token.string, token.start, len(lines)))
            else:
                above.append((token.string, token.start))
        elif token.type == tokenize.NEWLINE:
            if words not in HEADS:
                written += [(*comment, len(lines)) for comment in above]
                above = []
            lines.append((first or last, last))
            first, words = 0, ""
        elif token.type not in LAYOUT:
            first = first or token.start[0]
            words += token.string if len(words) < LONGEST else ""
    written += [(*comment, len(lines)) for comment in above]
    if first:  # a comment at the end of the file takes the place of the end of its line
        lines.append((first, last))
    return lines, written


def tokens(code: bytes) -> Iterable[tokenize.TokenInfo]:
    """The tokens of a file, as far as it can be read."""
    try:
        yield from tokenize.tokenize(io.BytesIO(code).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def apply(
    findings: Iterable[Finding], found: Sequence[Comment], families: Callable[[str], str]
) -> tuple[list[Finding], list[Finding], list[Comment]]:
    """The findings that stand, those that are silenced, and the `allow`s that silence nothing. They may name rules, `families`
    of them, and ALL."""
    stand: list[Finding] = []
    silent: list[Finding] = []
    used: set[Comment] = set()
    by_line: dict[int, list[Comment]] = defaultdict(list)
    for comment in (each for each in found if not each.strange):
        for line in range(comment.first, comment.last + 1):
            by_line[line].append(comment)
    for finding in findings:
        here = by_line.get(finding.place.line, ())
        by = [
            c for c in here if not c.rules or finding.rule in c.rules or (c.ours and _of_family(c, finding, families))
        ]
        used.update(by)
        (silent if by else stand).append(finding)
    return stand, silent, [c for c in found if c.ours and c not in used]


def _of_family(comment: Comment, finding: Finding, families: Callable[[str], str]) -> bool:
    """Whether it names the family of a finding, or ALL: one that is called as a rule is the rule, or more were silent than
    somebody looked at."""
    return names_one({name for name in comment.rules if not families(name)}, finding.rule, families)


def removal(code: bytes, comment: Comment) -> Fix:
    """Take an unused comment away, and its line if nothing else stands on it."""
    start, end = comment.span.start, comment.span.end
    line = code.rfind(b"\n", 0, start) + 1
    stop = code.find(b"\n", end)
    stop = len(code) if stop < 0 else stop
    if found := WRITTEN.search(code, end, stop):  # another comment; no copy is made of what may be a long line
        end = found.start()
    else:
        start = line + len(code[line:start].rstrip())
        end = stop - code[:stop].endswith(b"\r")
        if start == line:
            above = code[:line].removesuffix(b"\n").removesuffix(b"\r")
            if not above.endswith(b"\\"):
                end = min(stop + 1, len(code))
                while more := GOES_ON.match(code, end):
                    end = more.end()
            elif stop == len(code):  # at the end of a file nothing may be continued
                start = len(above[:-1].rstrip())
    return Fix("remove the comment", (Edit(Span(start, end), ""),), Safety.SAFE)


def renaming(code: bytes, comment: Comment, rule: str, meant: str) -> Fix:
    """Name the rule that is called nearly so."""
    text = code[comment.span.start : comment.span.end]
    found = re.search(rb"(?<![\w-])" + re.escape(rule).encode() + rb"(?![\w-])", text)
    assert found is not None
    span = Span(comment.span.start + found.start(), comment.span.start + found.end())
    return Fix(f"name {meant}", (Edit(span, meant),), Safety.UNSAFE, ("the findings of that rule are silent here",))


def allowing(code: bytes, comment: Comment) -> Fix:
    """Say what was meant where something else than an `allow` stands."""
    start = code.index(comment.strange.encode(), code.index(b":", comment.span.start))
    edit = Edit(Span(start, start + len(comment.strange.encode())), comment.meant)
    return Fix(f"say {comment.meant}", (edit,), Safety.UNSAFE, ("what it names is silent here",))


def additions(source: SourceFile, by_line: Mapping[int, Sequence[str]], reason: str) -> list[Edit]:
    """An `allow` for each of these lines' rules: at the end of the logical line, or in the `allow` that speaks of it."""
    lines, _ = logical_lines(source.code)
    there = [c for c in comments(source) if c.ours and c.rules and not c.strange]
    wanted: dict[int, set[str]] = {}
    for line, rules in by_line.items():
        last = next((end for first, end in lines if first <= line <= end), line)
        wanted.setdefault(last, set()).update(rules)
    edits = []
    for line, missing in sorted(wanted.items()):
        if joined := next((c for c in there if c.first <= line <= c.last), None):
            text = source.code[joined.span.start : joined.span.end].decode()
            match = ALLOW.match(text)
            assert match is not None
            at = joined.span.start + len(text[: match.end("rules")].encode())
            more = ", ".join(sorted(missing - joined.rules))
            edits.append(Edit(Span(at, at), f", {more}" if more and joined.rules != NO_RULE else more))
        else:
            start = source.starts[line - 1]
            row = source.code[start:].split(b"\n", 1)[0].rstrip(b"\r")
            text = f"  # syncscope: allow[{', '.join(sorted(missing))}]" + (f" {reason}" if reason else "")
            edits.append(Edit(Span(start + len(row.rstrip()), start + len(row)), text))
    return edits


def put_above(old: SourceFile, new: SourceFile, longest: int) -> list[Edit]:
    """Each `allow` that was written to the end of a line and made it longer than a line may be, on lines of its own above."""
    rows, before = new.code.split(b"\n"), old.code.split(b"\n")
    edits = []
    for comment in comments(new):
        line = new.position(comment.span.start)[0]
        row = rows[line - 1]
        at = comment.span.start - new.starts[line - 1]
        code = row[:at].rstrip()
        if not comment.ours or not code or len(row.decode()) <= longest or row == before[line - 1]:
            continue
        first = rows[comment.first - 1]
        indent = first[: len(first) - len(first.lstrip())].decode()
        words = new.code[comment.span.start : comment.span.end].decode()
        written = textwrap.wrap(
            words,
            longest,
            initial_indent=indent,
            subsequent_indent=f"{indent}{CONTINUED}",
            break_long_words=False,
            break_on_hyphens=False,
        )
        start = new.starts[comment.first - 1]
        behind = row[at + len(words.encode()) :]
        edits.append(Edit(Span(start, start), "".join(f"{each}\n" for each in written)))
        rest = f"  {behind.strip().decode()}" if behind.strip() else ""
        edits.append(Edit(Span(new.starts[line - 1] + len(code), new.starts[line - 1] + len(row)), rest))
    return edits
