"""Whatever the layout: an `allow` that is written speaks of its line, changes no code, and leaves nothing when it goes."""

import ast

import pytest
from effort import draws
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from syncscope.linter.source import SourceFile
from syncscope.linter.suppressions import additions, comments, removal

GAP = st.sampled_from([" ", " ", " ", "  ", "\t", " \\\n", "\\\n  ", " \\\n\\\n", "\f"])
END = st.sampled_from(
    ["", "", "", " ", "  # why", "# noqa", "  # why \\", " \\\n", " \\\n    ", " \\\n  # why", ";", "; y = x.item()"]
)
WORDS = st.sampled_from(
    [
        "x = x.item()",
        "x = ( x.item() ,\n # in brackets\n x.item()\n )",
        "x = ( x.item() ,\n 1 ) + 2",
        'x = """\n# syncscope: allow[no-comment]\n""" ; y = x.item()',
        "f( lambda y : y.item() )",
        'print( "# syncscope: allow[nonzero]" , x.item() )',
        "@ f( x.item() )\ndef f( y = x.item() ) :\n\tpass",
        "if x.item() : pass",
        "if x.item() :\n  x.item()\nelse :\n  x.item()",
        "try :\n  x.item()\n# above\nfinally :\n  x.item()",
        "while ( x.item()\n) :\n  x.item() ;\n  # at the end",
        "match x.item() :\n  case 1 : x.item()\n  case 2 if x.item() :\n   pass",
        "# syncscope: allow[nonzero] for the next\nx.item()",
        "# not code",
        "",
    ]
)


@st.composite
def sources(draw: st.DrawFn) -> bytes:
    pieces = []
    for words in draw(st.lists(WORDS, min_size=1, max_size=4)):
        rows = [row.split(" ") for row in words.split("\n")]
        inside = '"""' in words
        for row in rows:
            indent = next((n for n, word in enumerate(row) if word), 0)
            text = " " * indent + row[indent] if indent < len(row) else ""
            for word in row[indent + 1 :]:
                text += (" " if inside or "#" in text or '"' in word + text else draw(GAP)) + word
            pieces.append(text + ("" if inside or not text.strip() else draw(END)))
    code = "\n".join(pieces) + draw(st.sampled_from(["", "\n", "\n\n"]))
    head = draw(st.sampled_from(["", "\ufeff", "# -*- coding: latin-1 -*-\n"]))
    newline = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    return (head + code).replace("\n", newline).encode()


def parsed(source: SourceFile) -> ast.Module:
    try:
        return ast.parse(source.code)
    except SyntaxError:
        assume(False)
        raise


def items(tree: ast.Module) -> list[int]:
    """The lines that say `.item`: where a finding would stand."""
    return [n.end_lineno or n.lineno for n in ast.walk(tree) if isinstance(n, ast.Attribute)]


def rows(raw: bytes) -> list[bytes]:
    """What stands on the lines, without white space at their ends."""
    return [row.rstrip() for row in raw.replace(b"\r", b"\n").split(b"\n")]


@settings(max_examples=draws(50))
@example(b"x = x.item() \\\n\ny = 1\n", "")
@example(b"x = x.item() \\\r\n   \r\n", "because")
@example(b"if x.item() \\\n: pass\n", "")
@example(b"x = 1 ; y = x.item()# noqa", "")
@given(sources(), st.sampled_from(["", "logged on purpose"]))
def test_an_allow_comes_and_goes(raw: bytes, reason: str) -> None:
    assume(
        not raw.rstrip().endswith(b"\\")
    )  # white space there is code: without it the file would end in the middle of a line
    source = SourceFile.of("x.py", raw)
    tree = parsed(source)
    wanted = items(tree)
    before = [c for c in comments(source) if c.ours]
    assume(not any(c.first <= line <= c.last for c in before for line in wanted))

    new = SourceFile.of("x.py", source.edited(additions(source, {line: ["host-read"] for line in wanted}, reason)))
    assert ast.dump(ast.parse(new.code)) == ast.dump(tree)
    ours = [c for c in comments(new) if "host-read" in c.rules]
    for line in wanted:
        assert any(c.first <= line <= c.last for c in ours), line

    back = new.edited([edit for c in ours for edit in removal(new.code, c).edits])
    assert rows(back) == rows(raw)
    if not any(row != row.rstrip() for row in source.code.split(b"\n")):
        assert back == raw


@settings(max_examples=draws(50))
@given(sources(), st.data())
def test_any_unused_comment_can_be_taken_away(raw: bytes, data: st.DataObject) -> None:
    source = SourceFile.of("x.py", raw.replace(b"# why", b"# syncscope: allow[unique] why"))
    tree = parsed(source)
    for comment in comments(source):
        if comment.ours:
            new = SourceFile.of("x.py", source.edited(removal(source.code, comment).edits))
            assert ast.dump(ast.parse(new.code)) == ast.dump(tree)
            assert len(comments(new)) == len(comments(source)) - 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1 \\\n# syncscope: allow[unique]\ny = 2\n", "x = 1 \\\n\ny = 2\n"),
        ("x = 1 \\\n  # syncscope: allow[unique]", "x = 1"),
        ("# why \\\n# syncscope: allow[unique]\ny = 2\n", "# why \\\n\ny = 2\n"),
        ("if x:\n    # syncscope: allow[unique]\n    y = 2", "if x:\n    y = 2"),
        ("# syncscope: allow[unique]", ""),
        ("x = 1  # syncscope: allow[unique] why  # noqa\n", "x = 1  # noqa\n"),
        ("x = 1\r\n\t# syncscope: allow[unique]\r\ny = 2\r\n", "x = 1\r\ny = 2\r\n"),
    ],
)
def test_what_stays_of_a_line(door, before, after):
    path = door.write("x.py", before.encode())
    assert "made 1 fix" in door("lint", "--fix").err
    assert path.read_bytes() == after.encode()
