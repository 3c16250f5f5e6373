"""What runs in every step, by what functions, files and folders are called."""

from pathlib import Path

import pytest
from heat.hot_lines import heat

from syncscope.tensors.interpret import sites


def test_what_a_metric_gives_is_cold_and_its_update_is_hot(tmp_path: Path) -> None:
    folder = tmp_path / "package" / "metrics"
    folder.mkdir(parents=True)
    for each in (folder, folder.parent):
        (each / "__init__.py").touch()
    code = b"import torch\ndef area(x: torch.Tensor):\n    x.item()\ndef _area_update(x: torch.Tensor):\n    x.item()\n"
    found = sites(code, str(folder / "area.py"))
    assert [site.whole for site in found] == [False, True]


@pytest.mark.parametrize(
    "name",
    [
        "merge",
        "_generate_vllm",
        "synchronize_between_processes",
        "get_delta_weight",
        "_binary_auroc_compute",
        "lora_init",
        "benchmark",
        "_expand_probe_data",
        "to_rdmol",
        "to_trimesh",
        "_set_network",
        "_set_parameter_dict",
        "add_edge",
        "_precompute",
        "precompute_windows",
        "_build_cache",
        "_set_cos_sin_cache",
        "top_k_logits",
        "tile_parallel_spatial_tiled_decode",
        "_compute_default_rope_parameters",
        "make_output_human_readable",
        "attack",
        "get_sampling_output",
    ],
)
def test_what_runs_once_is_cold(name: str) -> None:
    found = sites(f"import torch\ndef {name}(x: torch.Tensor):\n    x.item()\n".encode(), "use.py")
    assert [site.whole for site in found] == [False]


@pytest.mark.parametrize(
    ("name", "said"),
    [("train_and_validate", "hot"), ("train_eval", "hot"), ("validate", "cold"), ("train_test_split", "cold")],
)
def test_what_trains_and_evaluates_has_the_steps_of_both(name: str, said: str) -> None:
    code = (
        f"import torch\nclass Manager:\n    def {name}(self, data):\n        for x in data:\n            self._on(x)\n"
    )
    code += "    def _on(self, x: torch.Tensor):\n        return self.model(x).sum().item()\n"
    assert heat(code.encode(), "managing.py") == {7: said}


@pytest.mark.parametrize("name", ["to_dict", "describe", "state_numpy", "__eq__"])
def test_what_a_loss_is_asked_for_beside_its_steps_is_cold(name: str) -> None:
    code = f"import torch\nclass OwnLoss(torch.nn.Module):\n    def {name}(self, x: torch.Tensor):\n        return x.item()\n"
    assert heat(code.encode(), "losses.py") == {4: "cold"}
    assert heat(code.replace(name, "weighed").encode(), "losses.py") == {4: "hot"}


@pytest.mark.parametrize(("beside", "said"), [("forward", "hot"), ("update", "cold"), ("reset", "cold")])
def test_what_a_module_computes_of_what_it_is_given_is_no_result_of_an_epoch(beside: str, said: str) -> None:
    code = "import torch\nclass Fisher(torch.nn.Module):\n    def compute(self, x: torch.Tensor):\n        return x.item()\n"
    code += f"    def {beside}(self, x: torch.Tensor):\n        return x @ self.vectors\n"
    assert heat(code.encode(), "discriminants.py") == {4: said}


def test_what_is_only_known_of_a_loss_is_none() -> None:
    code = "import torch\ndef {}(x: torch.Tensor):\n    x.item()\n"
    said = {
        name: sites(code.format(name).encode(), "use.py")[0].heat.words for name in ("masked_loss", "given_loss_args")
    }
    assert said == {
        "masked_loss": "in the loss `masked_loss`",
        "given_loss_args": "`given_loss_args` may run in every step",
    }


def test_what_stands_in_a_package_below_tests_is_cold(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "package" / "engines"
    folder.mkdir(parents=True)
    for each in (folder, folder.parent):
        (each / "__init__.py").touch()
    found = sites(b"import torch\ndef loss(x: torch.Tensor):\n    return x * x.max().item()\n", str(folder / "misc.py"))
    assert [(site.whole, site.heat.words) for site in found] == [(False, "in a file of tests")]


@pytest.mark.parametrize("name", ["data_utils.py", "evaluation.py", "fast_inference.py", "detect.py", "model_card.py"])
def test_a_file_of_what_runs_beside_the_training_is_cold(name: str) -> None:
    assert [site.whole for site in sites(b"import torch\ndef area(x: torch.Tensor):\n    x.item()\n", name)] == [False]


@pytest.mark.parametrize("name", ["non_max_suppression", "multiclass_nms", "attention_rescoring"])
def test_what_is_done_to_detections_and_hypotheses_is_cold(name: str) -> None:
    assert heat(f"import torch\n\ndef {name}(x: torch.Tensor):\n    return x.sum().item()\n".encode(), "x.py") == {
        4: "cold"
    }


@pytest.mark.parametrize(
    ("name", "told"), [("train", "hot"), ("patch_embed", "hot"), ("patch_merging", "hot"), ("patch_model", "cold")]
)
def test_a_train_without_a_loop_is_the_step_and_patches_of_an_image_are_no_set_up(name: str, told: str) -> None:
    assert heat(f"import torch\n\ndef {name}(x: torch.Tensor):\n    return x.sum().item()\n".encode(), "x.py") == {
        4: told
    }


@pytest.mark.parametrize("path", ["test_gan.py", "gan_test.py", "tests/gan.py", "my_metrics.py"])
def test_a_function_in_a_file_of_tests_or_metrics_is_cold(path: str) -> None:
    source = b"import torch\n\ndef size_of(x: torch.Tensor):\n    return x.sum().item()\n"
    assert heat(source, "gan.py") == {4: "hot"}
    assert heat(source, path) == {4: "cold"}


def test_a_script_that_is_run_with_arguments_only_has_the_name_of_a_test() -> None:
    """`copymem_test.py --epochs 3` trains; with a test in it, or below `tests/`, it is one."""
    source = b"""
import argparse
import torch

args = argparse.ArgumentParser().parse_args()

def train(x: torch.Tensor):
    x.mean().backward()
    return x.sum().item()
"""
    assert heat(source, "copymem_test.py") == {9: "hot"}
    assert heat(source, "tests/copymem_test.py") == {9: "cold"}
    assert heat(source + b"\ndef test_train():\n    train(torch.ones(2))\n", "copymem_test.py") == {9: "cold"}


def test_a_notebook_that_teaches_trains_nothing() -> None:
    source = b"import torch\n\ndef train_step(x: torch.Tensor):\n    x.mean().backward()\n    return x.sum().item()\n"
    assert heat(source, "own/work.ipynb") == {5: "hot"}
    assert heat(source, "tutorials/work.ipynb") == {5: "cold"}


def test_a_file_of_transforms_prepares_images_where_it_speaks_of_torchvision() -> None:
    source = b"""
import torch

class Flip(torch.nn.Module):
    def forward(self, x):
        return x / x.sum().item()
"""
    assert heat(source, "net/transforms.py") == {6: "hot"}
    assert heat(b"import torchvision" + source, "net/transforms.py") == {6: "cold"}
    assert heat(b"import torchvision" + source, "net/flows.py") == {6: "hot"}
    assert heat(source, "net/exporter.py") == {6: "cold"}


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("neg_log_likelihood", True),
        ("_negative_partial_likelihood", True),
        ("gaussian_nll", True),
        ("likelihood", False),
    ],
)
def test_a_negative_likelihood_is_a_loss(name: str, known: bool) -> None:
    code = f"import torch\n\ndef {name}(x: torch.Tensor):\n    return x.sum().item()\n"
    (site,) = sites(code.encode(), "x.py")
    assert site.heat.words == (f"in the loss `{name}`" if known else f"`{name}` may run in every step")


def test_what_predictors_and_pipelines_are_made_of_is_no_part_of_a_step(tmp_path: Path) -> None:
    source = b"import torch\nclass Found(torch.nn.Module):\n    def forward(self, x):\n        return x.sum().item()\n"
    told = {}
    for name in ("predictor", "pipelines", "heads"):
        folder = tmp_path / "package" / name
        folder.mkdir(parents=True)
        for each in (folder, folder.parent):
            (each / "__init__.py").touch()
        told[name] = heat(source, str(folder / "found.py"))
    assert told == {"predictor": {4: "cold"}, "pipelines": {4: "cold"}, "heads": {4: "hot"}}


SAMPLING = """
import torch

class {name}:
    def sample(self, x: torch.Tensor):
        return x * self.scaled(x)

    def scaled(self, x: torch.Tensor):
        return x.mean().item()

class Net(torch.nn.Module):
    def forward(self, x):
        return self.drawing.sample(x)
"""


@pytest.mark.parametrize(("name", "said"), [("DDIMSampler", "cold"), ("DPM_Solver", "cold"), ("Gaussian", "hot")])
def test_what_draws_pictures_is_cold_whatever_else_is_sampled_in_a_step(name: str, said: str) -> None:
    assert heat(SAMPLING.format(name=name).encode(), "net.py") == {9: said}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("self.index = self.made(x.shape[1])\n        self.add(x)", "cold"),
        ("self.loss = self.model(x)\n        self.add(x)", "hot"),
    ],
)
def test_the_train_of_an_index_is_no_step_of_training(body: str, told: str) -> None:
    code = "import torch\n\nclass Neighbours:\n    def train(self, x: torch.Tensor):\n"
    code += "        {}\n        print(x.max().item())\n\n{}"
    adds = "    def add(self, x):\n        self.index.add(x)\n"
    assert heat(code.format(body, adds).encode(), "x.py") == {7: told}
    assert heat(code.format(body, adds.replace("add(self", "keep(self")).encode(), "x.py") == {7: "hot"}


@pytest.mark.parametrize(
    ("name", "hot"), [("GuidedBackpropReLU", False), ("GradCAM", False), ("SaliencyMap", False), ("GradCampaign", True)]
)
def test_what_explains_a_network_trains_none(name: str, hot: bool) -> None:
    code = f"import torch\nclass {name}(torch.autograd.Function):\n    def forward(ctx, x: torch.Tensor):\n        x.item()\n"
    (line,) = heat(code.encode(), "cam.py").values()
    assert line == ("hot" if hot else "cold")
