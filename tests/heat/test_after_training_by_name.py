"""What is called or placed like what runs when the training is over: an export, a prediction, a file of the validation."""

import pytest
from heat.hot_lines import heat

LAYER = """
import torch

class {cls}(torch.nn.Module):
    def {function}(self, x: torch.Tensor):
        return x.sum().item()
"""


@pytest.mark.parametrize(
    ("cls", "function", "path", "hot"),
    [
        ("CifPredictor", "forward", "layers.py", True),
        ("CifPredictorExport", "forward", "layers.py", False),
        ("GPT2InferenceModel", "forward", "layers.py", False),
        ("VariationalInference", "forward", "layers.py", True),
        ("GenesPredictTokenizer", "forward", "layers.py", False),
        ("GenesTrainTokenizer", "forward", "layers.py", True),
        ("Distances", "distance_loss", "validation.py", False),
        ("Distances", "distance_loss", "distances.py", True),
        ("Encoder", "init_cache", "layers.py", False),
        ("Encoder", "init_hidden", "layers.py", True),
        ("Encoder", "init_shared_weights", "layers.py", False),
        ("RnnPlayer", "forward", "layers.py", False),
        ("Encoder", "deserialize", "layers.py", False),
        ("Encoder", "enable_compression", "layers.py", False),
    ],
)
def test_what_runs_after_the_training_is_told_by_its_name(cls, function, path, hot):
    source = LAYER.format(cls=cls, function=function).encode()
    assert heat(source, path) == {6: "hot" if hot else "cold"}


@pytest.mark.parametrize(("library", "waits"), [("torch", True), ("paddle", False), ("mindspore", False)])
def test_what_another_library_computes_is_none_of_torch(library, waits):
    source = f"import {library}\n\ndef forward(x):\n    y = {library}.relu(x)\n    return y.detach().sum().item()\n"
    assert bool(heat(source.encode(), "net.py")) is waits
