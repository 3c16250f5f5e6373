"""What waits on a GPU and what does not, as measured (cuda_waits.txt): the linter must say the same of every expression."""

import re
from pathlib import Path

import pytest
from rules.driver import findings

from syncscope import rules
from syncscope.analysis.join import Join
from syncscope.model.source import Place

TABLE = Path(__file__).with_name("cuda_waits.txt")
MADE = """
import copy, io, pickle
import numpy as np
import torch, torchvision
import torch.nn.functional as F

def step():
    d = torch.device("cuda")
    x, v, q, boxes = torch.randn(6, 5, device=d), torch.randn(6, device=d), torch.randn(5, device=d), torch.rand(6, 4, device=d)
    m, mv = x > 0, v > 0
    i, l = torch.tensor([0, 2], device=d), torch.tensor([1, 0, 3, 2, 1, 0], device=d)
    zero = torch.tensor(2, device=d)
    A = torch.randn(4, 4, device=d)
    S = A @ A.T + 4 * torch.eye(4, device=d)
    ci, n0 = torch.tensor([0, 2]), np.array([0, 2])
    cv, pin, big = torch.randn(6), torch.randn(6).pin_memory(), torch.randn(1000, 1000)
    gen, null = torch.Generator(device=d), open("/dev/null", "w")
    P = torch.nn.Parameter(torch.randn(4, 4, device=d))
    opt, opt2, adam = torch.optim.SGD([P], 0.1), torch.optim.SGD([P], 0.1), torch.optim.AdamW([P], 1e-3)
    adamf, adamc = torch.optim.AdamW([P], 1e-3, fused=True), torch.optim.AdamW([P], 1e-3, capturable=True)
    lbfgs, scaler = torch.optim.LBFGS([P]), torch.amp.GradScaler()
    sched = torch.optim.lr_scheduler.StepLR(opt, 1)
    TE = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, batch_first=True), 1).to(d)
    RNN = torch.nn.LSTM(8, 8, batch_first=True).to(d)
"""
DEFAULT = 2  # the confidence that is shown without asking
ROW = re.compile(r"(\d+) \| (.+?) \| (.+)")
ROWS = [
    (int(row[1]), row[2], row[3])
    for line in TABLE.read_text().splitlines()
    if line and not line.startswith("#")
    if (row := ROW.fullmatch(line)) is not None
]


def test_the_table_is_read_whole() -> None:
    lines = [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    assert len(ROWS) == len(lines) == len({expression for _, _, expression in ROWS}) > 250
    named = {rule.strip(" ?") for _, said, _ in ROWS if said != "-" for rule in said.split(",")}
    assert named <= set(rules.builtin())


def test_what_the_source_does_not_tell_has_a_reason() -> None:
    lines = TABLE.read_text().splitlines()
    unlike = [at for at, line in enumerate(lines) if "| ?" in line]
    assert all(lines[at].startswith("0 |") and lines[at - 1].startswith("# ? ") for at in unlike)
    for waits, said, expression in ROWS:
        assert (waits > 0) == (said != "-" and not said.startswith("?")), expression


@pytest.mark.parametrize(("waits", "said", "expression"), ROWS, ids=[row[2][:60] for row in ROWS])
def test_the_linter_says_what_was_measured(waits: int, said: str, expression: str) -> None:
    line = MADE.count("\n") + 1
    found = {
        finding.rule
        for finding in findings(f"{MADE}    {expression}\n")
        if finding.place.line == line and finding.confidence >= DEFAULT and finding.rule != "cpu-fallback"
    }
    assert (", ".join(sorted(found)) or "-") == said.removeprefix("?")


@pytest.mark.parametrize(
    ("expression", "op", "rule"),
    [
        ("x[i] = 1.0", "index_put_", "number-at-positions"),
        ("x[0, 0] = 1.0", "copy_", "number-at-positions"),
        ("x[ci]", "to", "host-tensor-as-index"),
        ("y = x[ci] + max(v)", "index", "host-tensor-as-index"),
        ("y = bool(v[0]) + torch.where(m, x, torch.tensor(1.0))", "where", "host-number-in-where"),
        ("y = bool(v[0]) + torch.where(m, x, torch.tensor(1.0))", "bool", "host-read"),
        ("torch.distributions.Normal(v, 1.0)", "to", "number-in-distribution"),
        ("torch.distributions.Normal(v, 1.0)", "bool", "distribution-validation"),
        ("y = x.new_tensor(float(zero))", "to", "tensor-literal-on-device"),
        ("y = float(torch.histc(v).max())", "histc", "hidden-read"),
        ("y = float(torch.histc(v).max())", "item", "host-read"),
    ],
)
def test_a_recorded_wait_finds_the_rule_that_knows_it(expression: str, op: str, rule: str) -> None:
    hazards = [rules.hazard(name, each) for name, each in rules.builtin().items()]
    join = Join(findings(f"{MADE}    {expression}\n"), hazards)
    found = join.finding(op, Place("/home/me/example.py", MADE.count("\n") + 1))
    assert join.rule(op, found) == rule
