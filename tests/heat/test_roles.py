"""What a function is for in its project, where its name alone would say that it may run in every step, or that it does."""

import textwrap
from pathlib import Path

import pytest

from syncscope.tensors.interpret import Project, sites

STEP = """
import torch
from .ops import used, sized

class Net(torch.nn.Module):
    def forward(self, x):
        return used(x) / sized(x)
"""
OVERRIDDEN = {
    "__init__": "from .offers import Offered\n",
    "model": STEP,
    "bases": """
    import torch

    __all__ = ["Base", "Kept"]

    class Base(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # cold

        def head(self, x):
            return x / x.sum().item()  # hot

    class Asked(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # hot

    class Made(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # hot

    def made():
        return Made()
    """,
    "offers": """
    import torch

    class Offered(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # hot
    """,
    "derived": """
    import torch
    from .bases import Asked, Base, Made
    from .offers import Offered

    class One(Base):
        def forward(self, x):
            return self.head(x) / x.sum().item()  # hot

    class Other(Base):
        '''As Base.'''
        def forward(self, x):
            return -x

    class Asks(Asked):
        def forward(self, x):
            return super().forward(-x)

    class Third(Made, Offered):
        def forward(self, x):
            return -x
    """,
}
NAMESAKES = {
    "model": STEP,
    "ops": """
    import torch

    def used(x: torch.Tensor):
        return x.sum().item()  # hot

    def sized(x: torch.Tensor):
        return x.sum().item()  # hot
    """,
    "other": """
    import torch

    # used()

    def used(x: torch.Tensor):
        return x.sum().item()  # cold
    """,
    "registered": """
    import torch
    from .registry import register

    @register
    def used(x: torch.Tensor):
        return x.sum().item()  # hot
    """,
    "own": """
    import torch

    def sized(x: torch.Tensor):
        return x.sum().item()  # hot

    class Other(torch.nn.Module):
        def forward(self, x):
            return sized(x)
    """,
}
TRANSFORMS = {
    "model": STEP,
    "prepared": """
    import torch
    from torchvision import transforms

    class Sorted:
        def __call__(self, x: torch.Tensor):
            return x / x.sum().item()  # cold

    class Batched:
        def __call__(self, x: torch.Tensor):
            return x / x.sum().item()  # cold

    class Scaled(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # hot

    class Penalty:
        def __call__(self, x: torch.Tensor):
            return x / x.sum().item()  # hot

    def prepared(data):
        every = transforms.Compose([transforms.ToTensor(), Sorted(), Scaled()])
        return torch.utils.data.DataLoader(data, collate_fn=Batched(every)), Penalty()
    """,
}
NUMBERS = {
    "__init__": "import torch\nfrom . import graphs\n\nALL = [graphs.balance, graphs.weights, graphs.asked]\n",
    "model": STEP.replace("used(x)", "asked(x)"),
    "graphs": """
    import torch

    def balance(x: torch.Tensor):
        zero = torch.tensor(0.0).to(x.device)  # cold
        for k in range(x.max().item()):  # cold
            zero += (x == k).sum()
        return zero.item() / 2  # cold

    def weights(x: torch.Tensor):
        zero = torch.tensor(0.0).to(x.device)  # hot
        return zero + x

    def asked(x: torch.Tensor):
        zero = torch.tensor(0.0).to(x.device)  # hot
        return float(zero)  # hot
    """,
}
TWICE = {
    "model": STEP,
    "again": """
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # cold

    class Net(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # cold

        def forward(self, x, scale=1):
            return x / x.sum().item()  # hot

    class Kept(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # hot

    class Kept(Kept):
        def forward(self, x, scale=1):
            return super().forward(x)
    """,
}
BELOW = {
    "model": STEP,
    "parts/no_package": """
    import torch

    def spoken_of_by_nobody(x: torch.Tensor):
        return x.sum().item()  # cold
    """,
}
UNUSED = {
    "model": STEP,
    "ops": """
    import torch
    from elsewhere.geometry import wrapped

    def used(x: torch.Tensor):
        return wrapped(x) / x.sum().item()  # hot

    def sized(x: torch.Tensor):
        return x / x.sum().item()  # hot
    """,
    "parts/__init__": "from .memories import Memory\n",
    "parts/memories": """
    import torch

    class Memory(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # hot

    class Aggregator(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # hot
    """,
    "parts/geometry": """
    import torch

    def wrapped(x: torch.Tensor):
        '''As `elsewhere.geometry.wrapped`.'''
        return wrapped_by_torch(x)

    def wrapped_by_torch(x: torch.Tensor):
        return x / x.sum().item()  # cold
    """,
    "parts/encoders": """
    import torch

    class Used(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # hot

    class Encoder(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # cold

    class Derived(Used):
        def forward(self, x):
            return super().forward(x) / x.sum().item()  # hot

    class Named(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # hot

    class Offered(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # hot

    __all__ = ["Offered"]

    def encoder_for(name):
        '''An Encoder.'''
        return Encoder()
    """,
    "parts/found_by_name": """
    import torch

    class Found(torch.nn.Module):
        def forward(self, x):
            return x / x.sum().item()  # hot
    """,
    "main": """
    from .parts.encoders import Used

    KINDS = {"named": "Named"}
    """,
}
CASES = {
    "overridden": OVERRIDDEN,
    "namesakes": NAMESAKES,
    "transforms": TRANSFORMS,
    "numbers": NUMBERS,
    "twice": TWICE,
    "below": BELOW,
    "unused": UNUSED,
}


@pytest.mark.parametrize("case", CASES)
def test_hot_and_cold_are_as_marked(case: str, tmp_path: Path) -> None:
    package = tmp_path / "net"
    for name, text in {"__init__": "", **CASES[case]}.items():
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(line.removeprefix("    ") for line in text.splitlines()) if name != "model" else text)
    for path in package.rglob("*.py"):
        lines = enumerate(path.read_text().splitlines(), 1)
        marked = {n: line.rpartition("# ")[2] for n, line in lines if line.endswith(("# hot", "# cold"))}
        found = sites(path.read_bytes(), str(path), Project())
        assert {s.place.line: "hot" if s.whole else "cold" for s in found} == marked, path.name


def test_what_makes_a_transform_of_distributions_runs_in_steps(tmp_path: Path) -> None:
    code = (
        "import torch\n\ndef _slope(x: torch.Tensor):\n    return x.sum().item()\n\n"
        "class Spline(torch.distributions.Transform):\n    def __init__(self, x):\n        self.slope = _slope(x)\n\n"
        "    def log_abs_det_jacobian(self, x, y):\n        return x\n\n"
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    )
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "flow.py").write_text(code)
    assert [site.hot for site in sites(code.encode(), str(tmp_path / "flow.py"), Project())] == [True]
    other = code.replace("log_abs_det_jacobian", "other")
    (tmp_path / "flow.py").write_text(other)
    assert [site.hot for site in sites(other.encode(), str(tmp_path / "flow.py"), Project())] == [False]


def test_a_copy_of_a_class_that_nobody_imports_is_cold_beside_the_one_that_is(tmp_path: Path) -> None:
    net = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x: torch.Tensor):
                return x / x.sum().item()
        """
    files = {
        "__init__.py": "from .tabular.net import Net",
        "tabular/__init__.py": "",
        "tabular/net.py": net,
        "net.py": net,
        "other.py": net.replace("class Net", "class Other"),
    }
    (tmp_path / "pyproject.toml").touch()
    for name, text in files.items():
        path = tmp_path / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    said = {}
    for name in ("tabular/net.py", "net.py", "other.py"):
        path = tmp_path / "pack" / name
        (site,) = sites(path.read_bytes(), str(path), Project())
        said[name] = site.hot
    assert said == {"tabular/net.py": True, "net.py": False, "other.py": True}


LIBRARY = {
    "__init__.py": "",
    "losses.py": """
        import torch

        class Contrast(torch.nn.Module):
            def forward(self, x):
                return x / part(x) / x.sum().item()  # hot

        class _Old(torch.nn.Module):
            def forward(self, x):
                return x / x.sum().item()  # cold

        def ratio(x: torch.Tensor):
            return x / x.sum().item()  # hot

        def part(x: torch.Tensor):
            return x / x.sum().item()  # hot

        def _part(x: torch.Tensor):
            return x / x.sum().item()  # cold

        class Net(torch.nn.Module):
            def forward(self, x):
                return x / x.sum().item()  # hot

        def bounded():
            return torch.nn.Sequential(Net(), Lambda(lambda x: lowered(x, 5)))

        def lowered(x: torch.Tensor, low):
            return x / x.sum().item()  # hot
        """,
    "train.py": """
        from .losses import Net, bounded

        def train_step(x):
            Net()(x).backward()
        """,
}


@pytest.mark.parametrize("library", [True, False])
def test_what_a_library_does_not_use_is_there_for_others(library: bool, tmp_path: Path) -> None:
    (tmp_path / ("setup.py" if library else ".git")).touch()
    (tmp_path / "net").mkdir()
    for name, text in LIBRARY.items():
        (tmp_path / "net" / name).write_text(textwrap.dedent(text))
    path = tmp_path / "net/losses.py"
    lines = enumerate(path.read_text().splitlines(), 1)
    marked = {n: line.rpartition("# ")[2] for n, line in lines if line.endswith(("# hot", "# cold"))}
    if not library:
        marked |= {6: "cold", 13: "cold", 16: "cold"}
    found = sites(path.read_bytes(), str(path), Project())
    assert {site.place.line: "hot" if site.hot else "cold" for site in found} == marked
