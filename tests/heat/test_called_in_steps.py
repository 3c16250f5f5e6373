"""What a step calls runs in it, whatever its name, its folder or `no_grad` says."""

from pathlib import Path

import pytest
from heat.called import MODEL, heat, marked

from syncscope.tensors.interpret import Project, sites


@pytest.mark.parametrize("name", ["model", "parts"])
def test_what_a_step_calls_is_hot_where_the_call_is(package: Path, name: str) -> None:
    path = package / f"{name}.py"
    assert heat(path) == marked(path.read_text())


def test_a_folder_of_tools_is_part_of_a_step_that_calls_it(package: Path) -> None:
    tools = package / "tools"
    tools.mkdir()
    (tools / "__init__.py").touch()
    path = tools / "boxes.py"
    path.write_text(
        "import torch\n\ndef clipped(x: torch.Tensor):\n    return x.sum().item()\n\n"
        "def drawn(x: torch.Tensor):\n    return x.sum().item()\n"
    )
    assert heat(path) == {4: "cold", 7: "cold"}
    model = package / "model.py"
    model.write_text("from .tools.boxes import clipped\n" + MODEL.replace("match(x)", "clipped(x)"))
    assert heat(path) == {4: "hot", 7: "cold"}


def test_a_project_whose_name_ends_like_a_metric_is_none(tmp_path: Path) -> None:
    for name in ("geometric", "metric", "metrics", "torchmetrics"):
        folder = tmp_path / name / "deep"
        folder.mkdir(parents=True)
        (folder.parent / "__init__.py").touch()
        (folder / "__init__.py").touch()
        (folder / "ops.py").write_text("import torch\n\ndef scaled(x: torch.Tensor):\n    return x.sum().item()\n")
    told = {
        name: heat(tmp_path / name / "deep" / "ops.py")[4]
        for name in ("geometric", "metric", "metrics", "torchmetrics")
    }
    assert told == {"geometric": "hot", "metric": "cold", "metrics": "cold", "torchmetrics": "cold"}


def test_a_metric_that_a_step_sets_to_nothing_is_so_as_often_as_it_gives_a_result(package: Path) -> None:
    path = package / "metrics.py"
    path.write_text(
        "import torch\n\nclass Correlation:\n    def reset(self):\n        self.total = self.x.cuda().sum().item()\n\n"
        "    def scale(self, x: torch.Tensor):\n        return x.sum().item()\n"
    )
    model = package / "model.py"
    model.write_text(
        "from .metrics import Correlation\n"
        + MODEL.replace("match(x)", "Correlation().reset()\n        self.m.scale(x)")
    )
    assert heat(path) == {5: "cold", 8: "hot"}


def test_a_module_that_is_called_where_it_is_made_is_made_in_each_step(package: Path) -> None:
    path = package / "modules.py"
    module = (
        "class {}(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.bins = torch.arange(n).cuda().sum().item()\n\n    def forward(self, x):\n        return x\n\n"
    )
    path.write_text("import torch\n\n" + module.format("Anew") + module.format("Once"))
    (package / "model.py").write_text(
        "from .modules import Anew, Once\n"
        + MODEL.replace("match(x)", "Anew(len(x))(x)").replace(
            "self.grid =", "self.once = Once(4)\n        self.grid ="
        )
    )
    assert heat(path) == {6: "hot", 14: "cold"}


SCRIPT = """
import torch

@torch.no_grad()
def accuracy(out, target):
    return (out.argmax(1) == target).float().mean().item()  # hot

@torch.no_grad()
def average(model, x: torch.Tensor):
    model.mul_(x.sum().item())  # hot

def build_targets(x: torch.Tensor):
    return _convert_boxes(x) + x.sum().item()  # hot

def _convert_boxes(x: torch.Tensor):
    return x.sum().item()  # hot

def build_network(x: torch.Tensor):
    return x.sum().item()  # cold

@torch.no_grad()
def look_at(x: torch.Tensor):
    return x.sum().item()  # cold

def {head}:
    network = build_network(torch.ones(3))
    for step, (x, y) in enumerate(loader):
        loss = network(x, build_targets(x))
        loss.backward()
        average(network, x)
        shown = accuracy(loss, y)
        if step % 100 == 0:
            look_at(x)
"""


@pytest.mark.parametrize("head", ["def run()", "if __name__ == '__main__'", "with torch.autograd.detect_anomaly()"])
def test_a_script_alone_calls_what_it_calls_in_its_loop(head: str) -> None:
    code = SCRIPT.replace("def {head}", head)
    found = sites(code.encode(), "script.py")
    told = {site.place.line: "hot" if site.hot else "cold" for site in found if site.op == "item"}
    assert told == marked(code)


def test_a_folder_of_transforms_prepares_data_and_a_file_of_this_name_may_not(package: Path) -> None:
    code = (
        "import torch\n\nclass Cut(torch.nn.Module):\n    def forward(self, x):\n        return x.exp().sum().item()\n"
    )
    (package / "transform").mkdir()
    (package / "transform" / "__init__.py").write_text("")
    for path in (package / "transform" / "cut.py", package / "transform.py"):
        path.write_text(code)
    assert heat(package / "transform" / "cut.py") == {5: "cold"}
    assert heat(package / "transform.py") == {5: "hot"}


def test_a_private_function_that_other_files_import_is_not_only_called_in_its_own(package: Path) -> None:
    path = package / "shared.py"
    path.write_text(
        "import torch\n\ndef _normed(x: torch.Tensor):\n    return x.sum().item()\n\n"
        "def evaluate(x: torch.Tensor):\n    return _normed(x)\n"
    )
    assert heat(path) == {4: "cold"}
    model = package / "model.py"
    model.write_text("from .shared import _normed\n" + MODEL.replace("match(x)", "_normed(x)"))
    assert heat(path) == {4: "hot"}


def test_a_network_that_is_called_a_transform_prepares_nothing() -> None:
    code = (
        b"import torch\n\nclass Transform(torch.nn.Module):\n    def forward(self, x):\n        return self.scaled(x)\n\n"
        b"    def scaled(self, x: torch.Tensor):\n        return x.sum().item()\n"
    )
    assert [site.hot for site in sites(code, "x.py")] == [True]
    assert [site.hot for site in sites(code.replace(b"forward", b"prepare"), "x.py")] == [False]


AGENT = """
import torch

class Agent:
    def get_action(self, state: torch.Tensor):
        return state.argmax().item()  # {}

    def learn(self, batch):
        loss = self.criterion(self.actor(batch))
        loss.backward()
        self.optimizer.step()

    def test(self, env):
        return env.step(self.get_action(env.state))
"""
ROLLOUT = """
import torch

def train(agent, env, memory):
    state = env.reset()
    while True:
        action = {}
        state = env.step(action)
        agent.learn(memory.sample())
"""


@pytest.mark.parametrize(("action", "said"), [("agent.get_action(state)", "hot"), ("env.any_action()", "cold")])
def test_what_a_class_calls_to_be_tested_and_a_loop_elsewhere_in_each_step_is_hot(
    package: Path, action: str, said: str
) -> None:
    (package / "rollout.py").write_text(ROLLOUT.format(action))
    path = package / "agent.py"
    path.write_text(AGENT.format(said))
    assert heat(path) == marked(path.read_text())


NAMES = "report_norm print_stats save_sample plot_batch predict_labels export_stats load_state setup_batch test_norm".split()
NAMES += "evaluate_batch show summarize visualize log_gradients".split()
TRAINER = """
import torch

class Trainer:
    def train_step(self, x: torch.Tensor):
        loss = self.model(x)
        loss.backward()
        {call}

    def noted(self, loss: torch.Tensor):
        self.{name}(loss)

    def train(self, trainer, loader):
        {once}
        trainer.run(self, loader)

    def {name}(self, loss: torch.Tensor):
        self.norms.append(loss.sqrt().item())
"""


@pytest.mark.parametrize("name", NAMES)
def test_no_name_is_cold_that_a_step_surely_calls(name: str) -> None:
    for call, once, told in (
        (f"self.{name}(loss)", "pass", True),
        ("self.noted(loss)", "pass", True),
        (f"if self.rank == 0 and self.step % 100 == 0:\n            self.{name}(loss)", "pass", False),
        (f"self.logger.{name}(loss)", "pass", False),
        ("self.model.train()", f"self.{name}(trainer.loss)", False),
    ):
        found = sites(TRAINER.format(call=call, once=once, name=name).encode(), "trainer.py", Project())
        assert [site.hot for site in found if site.op == "item"] == [told], (call, once)


INFERRED = """
import torch
from torch import nn

class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.distance = set_distance("l1")

    def forward(self, x: torch.Tensor):
        return self.inference(x)

    def inference(self, x: torch.Tensor):
        self.only_known(x)
        return self.fused(x) + x.sum().item()  # hot

    def fused(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def only_known(self, x: torch.Tensor):
        return x[x.sum().item() :]  # hot

class Apart(nn.Module):
    def forward(self, x: torch.Tensor):
        return x + 1

    def inference(self, x: torch.Tensor):
        return x.sum().item()  # cold

class Server:
    def inference(self, x: torch.Tensor):
        return x.sum().item()  # cold

def set_distance(name):
    if name == "l1":
        def distance(x: torch.Tensor, y: torch.Tensor):
            return (x - y).abs().sum().item()  # hot
    else:
        def other(x: torch.Tensor, y: torch.Tensor):
            return (x - y).sum().item()  # cold
        other(torch.ones(2).cuda(), torch.zeros(2).cuda())
        raise ValueError(name)
    return distance

def training_step(model: Autoencoder, server: Server, x: torch.Tensor):
    model(x).backward()
"""


def test_what_a_network_infers_in_its_forward_is_hot_and_what_set_up_gives_back_is_no_set_up(package: Path) -> None:
    path = package / "inferred.py"
    path.write_text(INFERRED)
    assert heat(path) == marked(INFERRED)


VALUES = """
import torch

class QuantileValues:
    def evaluate_actions(self, x: torch.Tensor):
        return x / x.sum().item()  # {}
"""
LEARNER = """
import torch

def update(model, x: torch.Tensor):
    found = model(x)
    {}
    found.sum().backward()
"""


@pytest.mark.parametrize(
    ("call", "told"),
    [("found = found.evaluate_actions(x)", "hot"), ("found.evaluate_actions(x)", "cold"), ("pass", "cold")],
)
def test_what_a_step_asks_any_object_for_runs_in_it_where_few_methods_are_called_so(
    call: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "learner.py").write_text(LEARNER.format(call))
    path = tmp_path / "values.py"
    path.write_text(VALUES.format(told))
    assert heat(path) == marked(path.read_text())


@pytest.mark.parametrize("imports", ["from net.shown import evaluate", "from .shown import (\n    evaluate,\n)"])
def test_a_name_means_what_it_is_imported_from_and_no_namesake_of_a_program_beside_it(
    package: Path, imports: str
) -> None:
    path = package.parent / "train.py"
    path.write_text(
        "import torch\n\ndef evaluate(model, batches):\n"
        "    return sum(model(x.cuda()).sum().item() for x in batches)\n\n"
        "def train(model, opt, batches):\n    for epoch in range(9):\n        for x in batches:\n"
        "            model(x).backward()\n            opt.step()\n        evaluate(model, batches)\n"
    )
    (package / "shown.py").write_text("def evaluate(x):\n    return x\n")
    (package / "model.py").write_text(f"{imports}\n" + MODEL.replace("match(x)", "evaluate(x)"))
    assert heat(path)[4] == "cold"


ATTACKS = """
import torch

class EvasionAttack:
    def generate(self, x):
        raise NotImplementedError
"""
KINDS = """
import torch
from attacks.base import EvasionAttack
from attacks.unseen import Common

class Other:
    def generate(self, x: torch.Tensor):
        return x / x.sum().item()  # cold

class FastGradient(EvasionAttack):
    def generate(self, x: torch.Tensor):
        return x / x.sum().item()  # {0}

class Projected(FastGradient):
    def generate(self, x: torch.Tensor):
        return x / x.max().item()  # {0}

class Patched(EvasionAttack):
    def generate(self, x: torch.Tensor):
        return x / x.min().item()  # {0}

class Descent(Common):
    def generate(self, x: torch.Tensor):
        return x / x.mean().item()  # {0}
"""
ATTACKED_IN_STEPS = """
import torch

class Trainer:
    def __init__(self, attack, net, optimizer):
        self._attack, self.net, self.optimizer = attack, net, optimizer

    def fit(self, loader):
        for x in loader:
            x = {}.generate(x.cuda())
            self.net(x).mean().backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("of", "told"), [("self._attack", "hot"), ("attack", "hot"), ("self.text", "cold"), ("self.net", "cold")]
)
def test_what_a_step_asks_an_object_for_that_is_called_like_what_many_are_a_kind_of(
    of: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    folder = tmp_path / "attacks"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "unseen.py").write_text("class Common:\n    pass\n")
    (folder / "base.py").write_text(ATTACKS)
    (folder / "kinds.py").write_text(KINDS.format(told))
    (tmp_path / "trainer.py").write_text(ATTACKED_IN_STEPS.format(of))
    assert heat(folder / "kinds.py") == marked((folder / "kinds.py").read_text())


_LOOP = """\
for epoch in range(10):
    for batch in loader:
        x, y = to_device(batch, "cuda")
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        print(accuracy(net(x), y))
"""


@pytest.mark.parametrize("around", ["", "def main(net, loader, opt):\n", 'if __name__ == "__main__":\n'])
def test_what_a_loop_of_a_program_calls_beside_the_training_runs_in_its_steps(tmp_path: Path, around: str) -> None:
    (tmp_path / "pyproject.toml").touch()
    tools = tmp_path / "data_utils.py"
    tools.write_text(
        "import torch\n\ndef to_device(batch, device):\n    return torch.from_numpy(batch).to(device).sum().item()\n\n"
        "@torch.no_grad()\ndef accuracy(out: torch.Tensor, y):\n    return (out == y).sum().item()\n\n"
        "def shown(x: torch.Tensor):\n    return x.sum().item()\n"
    )
    loop = "".join("    " * bool(around) + line for line in _LOOP.splitlines(keepends=True))
    text = "import torch\nfrom data_utils import accuracy, shown, to_device\n\ndef name():\n    return shown(torch.ones(3))\n\n"
    (tmp_path / "train.py").write_text(f"{text}{around}{loop}")
    assert heat(tools) == {4: "hot", 8: "hot", 11: "cold"}


def test_a_file_that_is_called_tools_helps_the_steps(tmp_path: Path) -> None:
    code = "import torch\n\nclass Optimizer:\n    def __call__(self, x: torch.Tensor):\n        return x.sum().item()\n"
    found = {}
    for name in ("tools.py", "tools/optimizer.py", "eval.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.with_name("__init__.py").touch()
        path.write_text(code)
        found[name] = heat(path)[5]
    assert found == {"tools.py": "hot", "tools/optimizer.py": "cold", "eval.py": "cold"}
