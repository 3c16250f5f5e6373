"""Programs of others' training libraries that take the GPU by themselves, on a machine without one."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from syncscope import kineto
from syncscope.model.trace import Kind

DATA = """
import torch
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(16, 4)), 4)
"""
PROGRAMS = {
    "lightning": DATA
    + """
import lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)
    def training_step(self, batch, number):
        loss = self.linear(batch[0]).pow(2).mean()
        self.log("loss", loss, prog_bar=True)
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
trainer = lightning.Trainer(accelerator="auto", devices=1, max_epochs=1, logger=False, enable_model_summary=False)
trainer.fit(Model(), loader)
print("trained on", trainer.strategy.root_device)
""",
    "accelerate": DATA
    + """
from accelerate import Accelerator
accelerator, model = Accelerator(), torch.nn.Linear(4, 1)
model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1), loader)
for (x,) in loader:
    loss = model(x).pow(2).mean()
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
print("trained on", accelerator.device, loss.item())
""",
    "transformers": """
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, vocab_size=50)
data = [{"input_ids": torch.randint(0, 50, (8,)), "labels": torch.tensor(i % 2)} for i in range(16)]
options = dict(max_steps=3, logging_steps=1, report_to=[], save_strategy="no", disable_tqdm=True)
arguments = TrainingArguments("out", per_device_train_batch_size=4, **options)
trainer = Trainer(model=BertForSequenceClassification(config), args=arguments, train_dataset=data)
trainer.train()
print("trained on", arguments.device)
""",
    "ignite": """
import torch
from ignite.engine import Events, create_supervised_trainer
model = torch.nn.Linear(4, 1).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
trainer = create_supervised_trainer(model, optimizer, torch.nn.functional.mse_loss, device=torch.device("cuda"))
trainer.run([(torch.randn(4, 4), torch.randn(4, 1)) for _ in range(3)], max_epochs=1)
print("trained on", next(model.parameters()).device)
""",
}


@pytest.mark.parametrize("device", ["cpu", "ocl"])
@pytest.mark.parametrize("library", PROGRAMS)
def test_a_library_trains_on_while_it_is_recorded(tmp_path: Path, library: str, device: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    if device == "ocl":
        pytest.importorskip("pyopencl")
    (tmp_path / "train.py").write_text(PROGRAMS[library])
    command = [sys.executable, "-m", "syncscope", "run", "--device", device, "--quiet", "train.py"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    if done.returncode and subprocess.run([sys.executable, "-c", f"import {library}"], env=environment).returncode:
        pytest.skip(
            f"{library} cannot be imported here, recorded or not"
        )  # a torchvision that was built for another torch
    assert done.returncode == 0, done.stderr
    assert f"trained on {device}" in done.stdout
    (written,) = tmp_path.glob("runs/*/*.pt.trace.json.gz")
    trace = kineto.read(written)
    places = [trace.places[place] for place in trace.place[trace.rows(Kind.READ)] if place >= 0]
    assert any(place.path.endswith("train.py") for place in places)
    assert len(trace.rows(Kind.STEP)) >= 3
