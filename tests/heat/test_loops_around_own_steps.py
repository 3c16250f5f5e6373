"""A loop that calls a function of its own file which holds a backward pass trains, whatever both are called."""

from pathlib import Path

from heat.hot_lines import heat

from syncscope.tensors.interpret import Project, sites

SOURCE = b"""
import torch
from tqdm import tqdm

class Epoch:
    def on_batch(self, x):
        raise NotImplementedError

    def go(self, dataloader):
        with tqdm(dataloader) as bar:
            for x in bar:
                loss = self.on_batch(x)
                a = loss.cpu().detach().numpy()
                b = loss.sum().item()  # hot
        return a, b

    def measure(self, dataloader):
        with torch.no_grad():
            for x in dataloader:
                b = self.of(x).sum().item()  # cold

class Train(Epoch):
    def on_batch(self, x):
        for part in x.parts:
            self.look(part)
        if self.scaled:
            loss = self.model(x)
            loss.backward()
        return loss

class Whole:
    def run_one(self, loader):
        for x in loader:
            self.model(x).backward()

    def evaluate_all(self, w: torch.Tensor):
        for seed in range(5):
            self.run_one(seed)
            print(w.sum().item())  # cold

class Epochs:
    def training_step(self, loader):
        a = self.scale.sum().item()  # cold
        for x in loader:
            loss = self.model(x).sum()
            loss.backward()
            b = loss.item()  # hot
        return a, b

    def train_step(self, x):
        a = self.model(x).sum().item()  # hot
        for part in x.parts:
            self.model(part).sum().backward()
        return a

class Sampled(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        a = x.sum().item()  # cold
        with torch.no_grad():
            for t in tqdm(range(1000), desc="Sampling"):
                x = self.net(x, t)
        return x, a

    def sample(self, x: torch.Tensor):
        a = x.sum().item()  # cold
        for t in tqdm(range(1000), disable=not self.verbose):
            x = self.net(x, t)
        return x, a

def move(model, x):
    def inner():
        pass
    # loss.backward()
    loss = model(x)
    loss.backward()
    return loss

def shown(model, batches):
    for x in batches:
        loss = move(model, x)
        print(loss.sum().item())  # hot

class Judge:
    def evaluate(self, w: torch.Tensor, other):
        for x in other:
            other.on_batch(x)
            move.around(x)
            print(w.sum().item())  # cold

    def evaluate_steps(self, w: torch.Tensor, other):
        for x in other:
            move(other, x)
            print(w.sum().item())  # hot
"""


def test_what_stands_in_it_is_hot() -> None:
    lines = enumerate(SOURCE.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(SOURCE, "engine.py") == marks


KEPT = b"""
import torch

class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        if not hasattr(self, "grid"):
            grid = x.max().item()  # cold
            self.grid = torch.arange(grid)
        if not hasattr(self, "scale"):
            other = x.min().item()  # hot
        if not hasattr(x, "mask"):
            x.mask = x.sum().item()  # cold
        return x + self.grid

    def get_equivalent_kernel_bias(self):
        return self.weight.cuda().sum().item()  # cold

    def switch_to_deploy(self):
        return self.weight.cuda().max().item()  # cold

def reparameterize_model(model, x: torch.Tensor):
    return x.sum().item()  # cold

def reparameterize(mean: torch.Tensor, log_variance):
    return mean.max().item()  # hot
"""


def test_what_is_kept_under_a_name_that_is_asked_for_and_made_anew_for_its_use_is_cold() -> None:
    lines = enumerate(KEPT.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(KEPT, "net.py") == marks


EPOCHS = b"""
import torch

class Agent:
    def learn(self, w: torch.Tensor):
        for epoch in range(self.epochs):
            self.rollout()
            self._update()
            self.log(w.sum().item())  # cold

    def _update(self, w: torch.Tensor):
        for epoch in range(self.update_epochs):
            self._update_critic()
            self.log(w.sum().item())  # hot
        for epoch in range(self.epochs):
            self.rollout()
            for x in self.batches:
                self.look(x, w.max().item())  # hot
        for epoch in range(self.epochs):
            self.scale(w)
            self.log(w.mean().item())  # hot

    def forward(self, x: torch.Tensor):
        norm = self.norm
        if norm < 0:
            self.norm = x.mean()
            norm = self.norm.item()  # cold
        if norm < 1:
            norm = x.sum().item()  # hot
        return x / norm

class Block(torch.nn.Module):
    def rep_params(self):
        return self.weight.cuda().sum().item()  # cold

def compute_default_rope_inv_freq(x: torch.Tensor):
    return x.sum().item()  # cold

def detect_faces(x: torch.Tensor):
    return x.sum().item()  # cold

def logits_to_df(logits: torch.Tensor):
    return logits.sum().item()  # cold
"""


def test_what_a_loop_over_epochs_does_between_the_parts_of_an_epoch_is_cold() -> None:
    lines = enumerate(EPOCHS.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(EPOCHS, "agent.py") == marks


BEFORE = b"""
import torch

class Trainer:
    def fit(self, loader):
        self.weigh(loader)
        self.score(loader)
        total = self.sized(loader)
        for x in loader:
            loss = self.model(x).mean() / total
            loss.backward()
            self.optimizer.step()
            self.score(x)
        self.model.eval()

    def weigh(self, x: torch.Tensor):
        self.weight = x.sum().item()  # cold

    def score(self, x: torch.Tensor):
        print(x.sum().item())  # hot

    def sized(self, x: torch.Tensor):
        return x.sum().item()  # cold
"""


def test_what_is_called_before_the_loop_alone_is_no_part_of_its_steps(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    file = tmp_path / "trainer.py"
    file.write_bytes(BEFORE)
    found = {s.place.line: "hot" if s.hot else "cold" for s in sites(BEFORE, str(file), Project()) if s.op == "item"}
    marked = {n: line.rpartition("# ")[2] for n, line in enumerate(BEFORE.decode().splitlines(), 1) if "# " in line}
    assert found == marked


def test_a_function_with_a_backward_pass_that_a_training_loop_calls_is_a_step_whatever_it_is_called() -> None:
    source = b"""
import torch

def update(net, opt, x: torch.Tensor):
    loss = net(x).sum()
    loss.backward()
    opt.step()
    if x.isnan().any():
        net.odd += 1

def ascend(net, x: torch.Tensor):
    net(x).sum().backward()
    if x.isnan().any():
        net.odd += 1

def main(net, opt, env):
    for t in range(1000):
        for _ in range(2):
            update(net, opt, env.sample(t))
"""
    words = {site.place.line: site.heat.words for site in sites(source, "x.py") if site.op == "condition"}
    assert words == {8: "in the training step", 13: "`ascend` may run in every step"}
