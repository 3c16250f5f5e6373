"""What a function waits for that only its callers in other files say: `# waits: op` stands on every line that waits."""

import textwrap

import pytest

from syncscope.tensors.interpret import Project, sites

UTIL = """
    import torch

    def check(t0, t):
        assert t0 <= t  # waits: condition

    def number(t0):
        return float(t0)  # waits: float

    def stop(t0, t):
        if t0 > t:  # waits: condition
            return t
        return t0

    def least(count, most):
        return count if count < most else most

    def of_host(rate):
        return float(rate)

    def unasked(rate):
        return float(rate)
"""
CALLER = """
    import torch
    {imports}

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            {prefix}check(x[0], x[1])
            {prefix}least(len(x), 3)
            {prefix}of_host(x.cpu().sum())
            return {prefix}stop(x[0], t=x[1]) * {prefix}number(x[0])
"""


def waits(folder, name: str) -> set[tuple[int, str]]:
    path = folder / name
    return {(site.place.line, str(site.op)) for site in sites(path.read_bytes(), str(path), Project())}


def marks(code: str) -> set[tuple[int, str]]:
    lines = enumerate(textwrap.dedent(code).splitlines(), 1)
    return {(number, op.strip()) for number, line in lines for op in line.split("# waits: ")[1:]}


def project(folder, **files: str) -> None:
    for name, code in {"pyproject": "", "__init__": "", **files}.items():
        (folder / f"{name}.{'toml' if name == 'pyproject' else 'py'}").write_text(textwrap.dedent(code))


@pytest.mark.parametrize(
    ("imports", "prefix"),
    [
        ("from .util import check, least, number, of_host, stop", ""),
        ("from . import util", "util."),
        ("from . import util as u", "u."),
    ],
)
def test_callers_in_other_files_say_what_a_function_is_passed(tmp_path, imports, prefix):
    project(tmp_path, util=UTIL, net=CALLER.format(imports=imports, prefix=prefix))
    assert waits(tmp_path, "util.py") == marks(UTIL)


def test_under_another_name_and_handed_on_by_a_package(tmp_path):
    inner = tmp_path / "ops"
    inner.mkdir()
    (inner / "__init__.py").write_text("from .rates import number\n")
    code = "import torch\n\ndef number(t0):\n    return float(t0)  # waits: float\n"
    (inner / "rates.py").write_text(code)
    net = """
        import torch
        from ops import number as read

        class Net(torch.nn.Module):
            def forward(self, x: torch.Tensor):
                return x * read(x.sum())
    """
    project(tmp_path, net=net)
    (tmp_path / "__init__.py").unlink()
    assert waits(inner, "rates.py") == marks(code)


def test_a_namesake_in_another_file_is_passed_nothing(tmp_path):
    net = CALLER.format(imports="from .util import check, least, number, of_host, stop", prefix="")
    other = "import torch\n\ndef number(t0):\n    return float(t0)\n"
    uses = "import torch\nfrom .other import number\n\ndef rate(lr):\n    return number(lr)\n"
    project(tmp_path, util=UTIL, net=net, other=other, uses=uses)
    assert waits(tmp_path, "other.py") == set()


def test_what_some_pass_as_a_number_is_no_sure_tensor(tmp_path):
    net = """
        import torch
        from .util import number

        class Net(torch.nn.Module):
            def forward(self, x: torch.Tensor):
                number(3.0)
                return x * number(x.sum())
    """
    project(tmp_path, util=UTIL, net=net)
    path = tmp_path / "util.py"
    assert {site.confidence for site in sites(path.read_bytes(), str(path), Project())} <= {1, 2}


ASKED = """
    def between(t0, t, t1):
        assert t0 <= t <= t1  # waits: condition
        return t

    def rising(ts):
        return all(x < y for x, y in zip(ts[:-1], ts[1:]))  # waits: builtin

    def share(ts):
        largest = ts.max()
        return (ts == largest).sum().item()  # waits: item

    def kept(ts, most):
        return ts.masked_select(ts < most)  # waits: masked_select
"""
ASKER = """
    import torch
    from . import interp

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            if interp.rising(x):
                return x * interp.share(x) + interp.kept(x, 1.0).sum()
            return interp.between(x[0], x[1], x[2])
"""


def test_a_file_that_does_not_name_torch_is_passed_tensors_by_one_that_does(tmp_path):
    project(tmp_path, interp=ASKED, net=ASKER)
    assert waits(tmp_path, "interp.py") == marks(ASKED)


def test_a_file_that_nobody_who_names_torch_imports_is_passed_none(tmp_path):
    project(tmp_path, interp=ASKED, net=ASKER.replace("import torch", "import jax").replace("torch.", "jax."))
    assert waits(tmp_path, "interp.py") == set()


def test_methods_of_objects_whose_class_is_known(tmp_path):
    solver = """
        import torch

        class Solver:
            def step(self, t0, t1):
                if t0 < t1:  # waits: condition
                    return t0
                return t1

            def skip(self, t0, t1):
                return t0 if t0 < t1 else t1

            @staticmethod
            def number(t0):
                return float(t0)  # waits: float

            def inner(self, t0):
                return float(t0)  # waits: float
    """
    net = """
        import torch
        from .solver import Solver

        class Euler(Solver):
            def run(self, x: torch.Tensor):
                return self.inner(x[0])

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.solver = Solver()

            def forward(self, x: torch.Tensor, other):
                other.skip(x[0], x[1])
                Euler().run(x)
                self.solver.number(x[0])
                return self.solver.step(x[0], x[1])
    """
    project(tmp_path, solver=solver, net=net)
    assert waits(tmp_path, "solver.py") == marks(solver)


def test_a_caller_that_is_nested_too_deeply_to_be_followed_tells_nothing(tmp_path):
    deep = f"y = {'-' * 700}number(x)"
    net = f"import torch\nfrom .util import number\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        {deep}\n"
    project(tmp_path, util=UTIL, net=net)
    assert waits(tmp_path, "util.py") == set()
