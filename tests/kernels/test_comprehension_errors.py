"""What a mistake in a comprehension, or in its call, is answered with."""

import re
import textwrap
from pathlib import Path

import pytest
import torch

from syncscope.kernels import comprehension
from syncscope.kernels.comprehensions.words import NotationError

MISTAKES = [
    ("def f(float(N) A) -> (C) { C = A(i) }", (), "i is on the right only"),
    ("def f(float(N) A) -> (C) { B(i) = A(i) }", (), "the result C is never written"),
    ("def f(float(N) A) -> (C) { C(i) += A(i) }", (), "has no value that"),
    ("def f(float(N) A) -> (C) { C(i) = A(i,i) }", (), "A has 1 dimension, and is read with 2"),
    ("def f(float(N) A) -> (C) { C(i) = exq(A(i)) }", (), "no tensor and no function is called exq"),
    ("def f(float(N) A) -> (C) { C(i) = A(i) + C(i-1) }", (), "is read by the statement that writes it"),
    ("def f(float(N) A) -> (C) { A(i) = 1 where i in 0:N }", (), "inputs are never written"),
    ("def f(float(N) A) -> (C) { C(i) = A(i)\n C(i) = A(i) }", (), "what it was is never read"),
    ("def f(float(N) A) -> (C) { C(i) +=! A(i+k) }", (), "cannot tell the range of i"),
    ("def f(float(N) A) -> (C) { C(i) = A(i-1) else 0 * 2 }", (), "cannot tell the range of i"),
    ("def f(uint32(N) A) -> (C) { C(i) = A(i) }", (), "torch computes nothing in uint32"),
    ("def f(float(N) A) -> (C) { C(i) = A(i) ", (), "is not closed"),
    ("def f(float(N) A) -> (C) { C(i,i) = A(i) }", (), "i stands twice on the left"),
    ("def f(float(N) A) -> (C) { C(i) = A(i) ? }", (), "expected an expression"),
    ("def f(float(N) A, float(N) B) -> (C) { C(i) = A(i)*B(i) }", (3, 4), "its dimension 0 is 4, and N is 3, as for A"),
    ("def f(float(N) A, float(N,M) B) -> (C) { C(i) +=! A(i)*B(i,j) }", (3, 3), "B has 2 dimensions, and was given 1"),
    ("def f(float(N) A) -> (C) { C(i) = A(i+1) where i in 0:N }", (4,), "leaves A: i + 1 is 1 to 4 of 4"),
    ("def f(float(N) A, float(K) B) -> (C) { C(i) +=! A(i+k)*B(k) }", (2, 5), "nothing is left for i"),
    ("def f(int(N) A) -> (C) { C(i) = A(i) }", (3,), "A is int, and was given float32"),
    ("def f(float(N) A, int(N) I) -> (C) { C(I(n)) += A(n) }", (), "I(...) is no index variable"),
    ("def f(float(N) A) -> (C) { C(i) = A(i) ** 2 }", (), "'**' is no operator of the notation"),
    ("def f(float(N) A) -> (C) { C = sum(A(i)) }", (), "no function is called sum"),
    ("def f(float(N) A) -> (float(N) C) { C(i) = A(i) }", (), "results are named without type or sizes"),
    ("def f(float(N) A) -> (C, C) { C(i) = A(i) }", (), "there are two results called C"),
    ("def f(float(N) A) -> (C) { C(i) = a(i) }", (), "no tensor and no function is called a"),
    ("def f(float(N) A) -> (C) { C = max(A(i)) }", (), "max takes 2 arguments, not 1"),
    ("def f(float(N) A) -> (C) { C(i) = A.1 }", (), "expected the number of a dimension of A, not '1'"),
    ("def f(float(N) A, int K) -> (C) { C(i) = A(i) * K }", (3, 1), "K is a number of the host"),
    ("def f(float(N) A) -> (C) { C(i) = A(i + .5) }", (), "0.5 is no integer, and indexes A"),
    ("def f(float(N) A, float(N) I) -> (C) { C(i) = A(I(i)) }", (3, 3), "I(i) is no integer, and indexes A"),
    ("def f(float(N) A) -> (C) { C(i) = A(<s> * i) }", (), "expected an expression, not '<'"),
    ("def f(float(N) A) -> (C) { C(i) = A(i)\n C(i) += 1 where i in 0:N+1 }", (3,), "C_1(i) leaves C_1: i is 0 to 3 of 3"),
    ("def f(float(N) A) -> (C) { C(i) = A(i)\n C(i) = C(i) + C(i+1) }", (), "is read by the statement that writes it"),
    ("def f(float(N) A) -> (C) { C(i) = A(i) where i in 3:2 }", (3,), "nothing is left for i: its `where` says 3:2"),
    ("def f(float(N) A) -> (C) { A(i) = A(i) * 2 }", (), "inputs are never written"),
    ("def f(float(N) A) -> (C) { C +=! A(j) * i where i in 0:N, j in 0:i }", (), "the range of j depends on i"),
    ("def f(float(N) A, int(N) I) -> (C) { C(i) +=! A(j) where i in 0:N, j in 0:I(i) }", (), "the range of j depends on data"),
    ("def f(float(N) A) -> (C) { C(i) = A(i) where i in 1:N }", (4,), "i begins at 1: the rest of C would be unset"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sizes", "said"), MISTAKES)
def test_a_mistake_is_said_in_the_words_of_the_notation(text, sizes, said):
    with pytest.raises(NotationError) as caught:
        comprehension(text)(*(torch.zeros(n) for n in sizes))
    message, line, caret = caught.value.message.splitlines()
    assert said in message
    assert line.strip() in text
    assert caret.strip() == "^"


def printed(text, sizes):
    with pytest.raises(NotationError) as caught:
        comprehension(text)(*(torch.zeros(n) for n in sizes))
    return str(caught.value)


def test_the_mistakes_of_the_page_are_as_they_are_printed():
    page = (Path(__file__).parents[2] / "docs" / "comprehensions.md").read_text()
    shown = re.search(r"these ten as they are printed:\n\n((?:    .*\n|\n)+)", page)[1]
    shown = textwrap.dedent(shown).strip().split("\n\n")
    assert len(shown) == 10
    assert set(shown) <= {printed(text, sizes) for text, sizes, _ in MISTAKES}


def test_complex_numbers_are_refused():
    with pytest.raises(NotationError, match="A is float, and was given complex64"):
        comprehension("def f(float(N) A) -> (C) { C(i) = A(i) }")(torch.zeros(3, dtype=torch.complex64))


def test_a_mistake_is_pointed_at():
    with pytest.raises(NotationError) as caught:
        comprehension("\n    def f(float(N) A) -> (C) {\n        C(i) = A(j)\n    }\n")
    assert str(caught.value) == (
        "j is on the right only: that is a reduction, and = is no operator of one\n"
        "  C(i) = A(j)\n"
        "           ^\n"
        " hint: write +=!, *=!, min=! or max=! instead of =, or put j on the left"
    )
