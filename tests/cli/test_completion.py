"""What the Tab key offers, asked as a shell asks."""

import pytest
from click.shell_completion import BashComplete

from syncscope.cli import commands


@pytest.mark.parametrize(
    ("typed", "begun", "offered"),
    [
        (["lint", "--select"], "nonz", {"nonzero"}),
        (["lint", "--ignore"], "nonzero,nm", {"nonzero,nms"}),
        (["lint", "--format"], "s", {"sarif"}),
        (["explain"], "host-r", {"host-read"}),
        (["lint", "--min-confidence"], "", {"low", "medium", "high"}),
    ],
)
def test_names_of_rules_and_choices_are_completed_in_a_shell(typed: list[str], begun: str, offered: set[str]) -> None:
    shell = BashComplete(commands, {}, "syncscope", "_SYNCSCOPE_COMPLETE")
    assert {item.value for item in shell.get_completions(typed, begun)} == offered
