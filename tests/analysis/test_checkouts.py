"""Files of two recordings that are the same, though the folders differ."""

import pytest

from syncscope.analysis.checkouts import same_files


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        # of one name in two folders: by the path from the checkout on
        ("/a/train.py /a/m/utils.py /a/n/utils.py", "/b/c/train.py /b/c/n/utils.py /b/c/m/utils.py", "0-0 1-2 2-1"),
        # what is read in one folder before and in another one after is not the same file
        ("/a/train.py /a/m/utils.py", "/b/train.py /b/n/utils.py", "0-0"),
        # one script, in a folder of another name, on another system, or given relative to where it ran
        ("/home/me/before/train.py", "/home/me/after/train.py", "0-0"),
        ("C:\\me\\train.py", "/home/me/train.py", "0-0"),
        ("before/train.py", "/home/me/after/train.py", "0-0"),
        # what lies in another environment is known by the end of its path
        ("/a/train.py /e/lib/timm/loss.py", "/b/train.py /f/g/timm/loss.py", "0-0 1-1"),
        ("/a/train.py /e/lib/timm/loss.py", "/b/train.py /f/g/mine/loss.py", "0-0"),
        ("/a/train.py", "/a/other.py", ""),
        ("", "/a/train.py", ""),
    ],
)  # fmt: skip
def test_files_meet_by_their_path_below_the_checkout(before: str, after: str, same: str) -> None:
    first, second = before.split(), after.split()
    expected = {second[int(b)]: first[int(a)] for a, b in (pair.split("-") for pair in same.split())}
    assert same_files(first, second) == expected
