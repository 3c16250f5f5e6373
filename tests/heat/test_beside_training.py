"""What stands beside the training in its own files: tools, trials, what uses a model, and the arm that ends the loop."""

from pathlib import Path

import pytest
from heat.hot_lines import heat

from syncscope.tensors.interpret import Project, sites

FILES = {
    "train": """
    import torch
    from logs import MetricLogger
    from nets import loaded

    def train(model, loader, path):
        log = MetricLogger()
        for step, x in enumerate(loader):
            loss = model(x.resize(3)).mean()
            loss.backward()
            log.update(loss=loss)
            if step == 1000:
                if path:
                    print(loss.item())  # cold
                break
            if loss < 0:
                scale = loss.item()  # hot
                loss = loss / scale
        loaded(path)
    """,
    "logs": """
    import torch

    class MetricLogger:
        def update(self, **values):
            for name, value in values.items():
                if isinstance(value, torch.Tensor):
                    value = value.item()  # hot
                print(name, value)
    """,
    "shrink": """
    import torch

    def resize(weight: torch.Tensor):
        return kept(weight)

    def kept(weight: torch.Tensor):
        return weight.sum().item()  # cold

    if __name__ == "__main__":
        resize(torch.load("weights.pt"))
    """,
    "nets": """
    import torch

    class KVCache:
        def place(self, at: torch.Tensor):
            return at[0].item()  # cold

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor, cache, pipe):
            return self.scaled(x) + cache.place(x) + weighted(pipe, x) + self.targets(x)

        def scaled(self, x: torch.Tensor):
            return x / x.sum().item()  # hot

        @property
        def targets(self, x: torch.Tensor):
            if self.kept is None and "kept" in self.names:
                if self.wide:
                    self.kept = counted(x)
            return self.kept

    @torch.no_grad()
    def counted(x: torch.Tensor):
        return x.sum().item()  # cold

    def weighted(pipe, x: torch.Tensor):
        return x.sum().item()  # cold

    def loaded(path):
        for name, weight in torch.load(path).items():
            if name == "alpha":
                return torch.abs(weight).item()  # cold
        return 1.0

    @torch.compile(dynamic=False, fullgraph=True)
    def stepped(p: torch.Tensor, step: torch.Tensor):
        p.add_(step.item())

    if __name__ == "__main__":
        net = Net()
        for step in range(3):
            x = torch.randn(3).cuda()
            loss = net(x)
            loss.backward()
            print(loss.sum().item())  # cold
    """,
}


@pytest.mark.parametrize("name", FILES)
def test_hot_and_cold_are_as_marked(name: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    for each, text in FILES.items():
        (tmp_path / f"{each}.py").write_text("\n".join(line[4:] for line in text.splitlines()))
    file = tmp_path / f"{name}.py"
    source = file.read_bytes()
    lines = enumerate(source.decode().splitlines(), 1)
    wanted = {number: line.rpartition("# ")[2] for number, line in lines if line.endswith(("# hot", "# cold"))}
    found = {s.place.line: "hot" if s.hot else "cold" for s in sites(source, str(file), Project()) if s.op == "item"}
    assert found == wanted


WRAPPED = b"""
import torch

def train(model, train_loader, device, logger):
    for step, batch in enumerate(tqdm(train_loader, desc="train")):
        batch = batch.to(device)
        model(batch).backward()
    for x, y in enumerate(logger.log_every(train_loader, 10)):
        x.backward()
"""


def test_a_batch_is_sent_to_the_device_however_its_loader_is_wrapped() -> None:
    assert [(s.op, s.place.line) for s in sites(WRAPPED, "train.py")] == [("to_device", 6)]


def test_a_loop_under_main_that_goes_over_data_trains() -> None:
    loop = (
        "import torch\nif __name__ == '__main__':\n  for x in loader:\n    z = torch.randn(3)\n    loss = net(x, z)\n"
    )
    assert heat(f"{loop}    loss.backward()\n    print(loss.item())\n".encode(), "gan.py") == {7: "hot"}


CALLED = b"""
import torch

def train_step(model, batch, optimizer):
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    return loss

def main(model, loader, optimizer):
    for epoch in range(10):
        total = torch.zeros((), device="cuda")
        print(total.item())  # cold
        for batch in loader:
            loss = train_step(model, batch, optimizer)
            total += loss.item()  # hot
    for epoch in range(10):
        train_step(model, loader, optimizer)
        print(total.item())  # hot

def by_engine(engine):
    while True:
        loss = engine.train_batch().item()  # hot
        print(loss)
"""


def test_a_loop_that_calls_steps_trains_whatever_its_function_is_called() -> None:
    lines = enumerate(CALLED.decode().splitlines(), 1)
    assert heat(CALLED, "run.py") == {n: line.rpartition("# ")[2] for n, line in lines if "# " in line}


GONE_THROUGH = """
import torch

def offsets(dataloader):
    for batch in dataloader:
        print(torch.unique(batch.index))
"""


def test_a_public_function_that_goes_over_a_loader_of_its_caller_runs_once(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "atoms").mkdir()
    (tmp_path / "atoms" / "__init__.py").write_text("from .stats import offsets\n")
    (tmp_path / "atoms" / "net.py").write_text("import torch\n\ndef train(x):\n    x.mean().backward()\n")
    file = tmp_path / "atoms" / "stats.py"
    file.write_text(GONE_THROUGH)
    assert {
        (site.hot, site.whole) for site in sites(file.read_bytes(), str(file), Project()) if site.op == "unique"
    } == {(False, False)}


NAMED = """
import torch
from ase.calculators.calculator import Calculator

class Potential(Calculator):
    def calculate(self, atoms, properties):
        self.energy = torch.tensor(atoms.positions, device="cuda").sum().item()  # cold

class Losses:
    def calculate(self, x: torch.Tensor):
        return x.sum().item()  # hot

def audio_write(x: torch.Tensor):
    return x.sum().item()  # cold

def compute_power(x: torch.Tensor):
    return x.sum().item()  # hot

def compute_wer(x: torch.Tensor):
    return x.sum().item()  # cold

def compute_char_wer(x: torch.Tensor):
    return x.sum().item()  # cold
"""


def test_what_uses_a_potential_writes_a_file_or_rates_words_is_no_part_of_a_step() -> None:
    lines = enumerate(NAMED.splitlines(), 1)
    assert heat(NAMED.encode(), "parts.py") == {n: line.rpartition("# ")[2] for n, line in lines if "# " in line}


@pytest.mark.parametrize("name", ["image_processing_net", "processing_net", "feature_extraction_net"])
def test_a_file_that_prepares_what_a_processor_gives_is_no_part_of_a_step(name: str) -> None:
    code = b"import torch\n\ndef boxes_of(x: torch.Tensor):\n    return x.sum().item()\n"
    assert heat(code, f"{name}.py") == {4: "cold"}
    assert heat(code, "signal_processing.py") == {4: "hot"}


FLAGS = """
import torch

class Looped(torch.nn.Module):
    def forward(self, x: torch.Tensor, inference_params=None, looped_inference=False):
        if looped_inference and x.amax() < 1:
            return x / x.sum().item()  # cold
        if inference_params is not None:
            x = x / x.sum().item()  # cold
        return x / x.sum().item()  # hot

class ECELoss(torch.nn.Module):
    def forward(self, logits, labels):
        return logits.sum().item()  # cold

class ModelWithTemperature(torch.nn.Module):
    def forward(self, x):
        return x.sum().item()  # cold

class KVCache(torch.nn.Module):
    def forward(self, x):
        return x.sum().item()  # cold
"""


def test_what_is_asked_for_inference_or_calibrated_afterwards_is_no_part_of_a_step() -> None:
    lines = enumerate(FLAGS.splitlines(), 1)
    assert heat(FLAGS.encode(), "parts.py") == {n: line.rpartition("# ")[2] for n, line in lines if "# " in line}


USED = "import torch\n\ndef scaled(x: torch.Tensor):\n    return x / x.sum().item()\n"
LEARNT = f"{USED}\ndef update(x, optimizer):\n    scaled(x).backward()\n    optimizer.step()\n"


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("inference/trainers/flows.py", USED, "hot"),  # what infers is what is trained
        ("inference/trainers/flow_inference.py", USED, "hot"),
        ("inference/trainers/eval/scores.py", USED, "cold"),
        ("inference/flows.py", USED, "cold"),
        ("inference/flows.py", LEARNT, "hot"),
        ("eval/train.py", USED, "hot"),
        ("eval/probe.py", LEARNT, "hot"),
        ("predict/training/flows.py", USED, "hot"),
        ("tokenization/trainer.py", USED, "hot"),
        ("tokenization/text.py", USED, "cold"),
        ("model/tokenize_utils.py", USED, "cold"),
        ("postproc/boxes.py", USED, "cold"),
        ("model/box_postprocessing.py", USED, "cold"),
        ("tests/train/flows.py", USED, "cold"),
        ("benchmarks/flows.py", LEARNT, "cold"),
    ],
)
def test_what_stands_among_trainers_or_trains_is_part_of_a_step(
    file: str, text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "net" / file
    path.parent.mkdir(parents=True)
    for folder in path.relative_to(tmp_path).parents[:-1]:
        (tmp_path / folder / "__init__.py").touch()
    path.write_text(text)
    found = sites(text.encode(), str(path), Project())
    assert [("hot" if s.hot else "cold") for s in found if s.op == "item"] == [said]
