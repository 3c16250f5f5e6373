"""An error that the program catches is still raised after the fix, and memory is given back where there was none left."""

import pytest
from rules.driver import EVERY, FIXES, HEAD, fixed

from syncscope.model.finding import Safety


def test_reads_are_not_merged_where_an_error_between_them_is_caught() -> None:
    code = (
        f"{HEAD}def f(x: torch.Tensor):\n    low = high = None\n    try:\n        low = x.min().item()\n"
        "        high = x.max().item()\n    except RuntimeError:\n        pass\n    return low, high\n"
    )
    assert fixed(code, allowed=FIXES) == code
    within = code.replace("try:", "with contextlib.suppress(RuntimeError):").replace(
        "    except RuntimeError:\n        pass\n", ""
    )
    assert fixed(within, allowed=FIXES) == within
    entries = code.replace("x.min()", "x[0]").replace("x.max()", "x[1]").replace("RuntimeError", "IndexError")
    assert fixed(entries, allowed=FIXES) == entries
    merged = fixed(code.replace("RuntimeError", "KeyboardInterrupt"), allowed={Safety.SAFE})
    assert "low, high = torch.stack" in merged


LINALG = {
    "no tensor is known": "def f(op):\n    return torch.linalg.cholesky(op), op.inverse()\n",
    "an attribute": "def f(self, y: torch.Tensor):\n    return torch.linalg.solve(self.kernel, y)\n",
    "caught": (
        "def f(x: torch.Tensor):\n    try:\n        return torch.linalg.cholesky(x)\n"
        "    except torch.linalg.LinAlgError:\n        return x\n"
    ),
    "caught, whatever it is": (
        "def f(x: torch.Tensor):\n    try:\n        return torch.linalg.cholesky(x)\n    except Exception:\n        return x\n"
    ),
}


@pytest.mark.parametrize("code", LINALG.values(), ids=LINALG)
def test_a_check_stays_where_somebody_may_need_it(code: str) -> None:
    assert fixed(HEAD + code, allowed=FIXES) == HEAD + code


@pytest.mark.parametrize(
    "body",
    [
        "    if torch.cuda.is_available():\n        torch.cuda.empty_cache()\n",
        "    torch.cuda.empty_cache()\n",
        "    if device == 'cuda':\n        torch.cuda.empty_cache()\n    else:\n        gc.collect()\n",
    ],
)
def test_a_function_that_is_there_to_empty_the_cache_does(body: str) -> None:
    code = f"import gc\nimport torch\n\n\ndef clear(device):\n{body}"
    assert fixed(code) == code


MISSED = {  # an error that the fix leaves out is what the code waits for
    "no position": "at = torch.where(d > 2)[0][0]",
    "not positive": "at = torch.linalg.cholesky(d @ d.mT)",
    "out of range": "at = d[d.argmax()]",
    "not valid": "at = torch.distributions.Normal(d, d).sample()",
    "no real number": "at = torch.as_tensor(math.sqrt(d.mean()))",
}
CATCHING = {
    "handler": "    try:\n        {line}\n    except (IndexError, ValueError, RuntimeError):\n        at = None\n",
    "suppressed": "    at = None\n    with contextlib.suppress(Exception):\n        {line}\n",
    "kept by a class": "    at = None\n    with Quiet():\n        {line}\n",
}


@pytest.mark.parametrize("catching", CATCHING.values(), ids=CATCHING)
@pytest.mark.parametrize("line", MISSED.values(), ids=MISSED)
def test_an_error_that_is_caught_is_still_raised(line: str, catching: str) -> None:
    quiet = "class Quiet:\n    def __exit__(self, *error):\n        return True\n\n\n"
    head = f"import contextlib\nimport math\n{HEAD}{quiet}def f(d: torch.Tensor):\n    d = d.float().flatten()\n"
    code = f"{head}{catching.format(line=line)}    return at\n"
    assert fixed(code, allowed=EVERY) == code
    free = f"{head}    {line}\n    return at\n"
    assert fixed(free, allowed=EVERY) != free


def test_checks_stay_where_what_they_raise_is_caught_later() -> None:
    code = (
        f"{HEAD}def f(u: torch.Tensor):\n    normal = torch.distributions.Normal(torch.zeros_like(u), u.exp())\n"
        "    try:\n        return normal.cdf(u)\n    except ValueError:\n        return None\n"
    )
    assert fixed(code, allowed=FIXES) == code


@pytest.mark.parametrize(
    "rescue",
    [
        "        try:\n            model(x)\n        except RuntimeError:\n            print(x)\n            {call}\n",
        "        model(x)\n        if is_oom(x):\n            print(x)\n            {call}\n",
        "        model(x)\n        if torch.cuda.memory_reserved() > limit:\n            {call}\n",
    ],
)
def test_memory_is_given_back_where_there_was_none_left(rescue: str) -> None:
    code = f"{HEAD}def train(model, xs, limit):\n    for x in xs:\n{rescue.format(call='torch.cuda.empty_cache()')}"
    assert fixed(code) == code
