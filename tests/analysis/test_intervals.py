import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from syncscope.analysis.intervals import covered, gaps, union

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


def columns(pairs):
    start = np.array([s for s, _ in pairs], np.int64)
    return start, start + np.array([d for _, d in pairs], np.int64)


def cells(start, end):
    return {t for s, e in zip(start, end, strict=True) for t in range(s, e)}


@given(PAIRS)
def test_union_and_gaps_cover_the_line_without_overlap(pairs):
    whole = union(*columns(pairs))
    between = gaps(whole)
    assert cells(*whole) == cells(*columns(pairs))
    assert (whole.start[1:] > whole.end[:-1]).all()
    assert whole.length == len(cells(*whole))
    assert not cells(*between) & cells(*whole)
    assert len(cells(*between)) + whole.length == (whole.end[-1] - whole.start[0] if len(whole.start) else 0)


@given(PAIRS, PAIRS)
def test_covered_counts_each_cell_of_a_window_once(pairs, windows):
    start, end = columns(windows)
    filled = cells(*columns(pairs))
    assert covered(union(*columns(pairs)), start, end).tolist() == [
        len(filled & set(range(s, e))) for s, e in zip(start, end, strict=True)
    ]
