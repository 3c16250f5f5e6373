"""How people call folders, files and classes whose code runs beside the training, as `conventions` has it of all else."""

import re
from functools import lru_cache

ASIDE = frozenset(
    """
    test tests testing test_utils test_functions validation validations benchmark benchmarks benchmarking profile profiling
    profiler scripts cli bin
    demo demos loaders data datasets data_readers data_transform data_utils data_util preprocess preprocessing postproc
    postprocess postprocessing post_processing transforms tokenizers tokenization eval evaluate evaluation evaluator
    evaluators val scoring inference trackers tools analysis statistics hub_interface sequence_generator generation scorers
    entrypoints dpm_solver loggers visualization visualizer visualizers deploy deployment explain export exporter exporters
    distributed dist_utils converters dataset_converters diagnostics cpu mps xpu npu hpu loader dataloaders dataloader
    data_loaders data_loader datamodules data_modules tutorials tutorial notebooks pruner pruners docs debug debugging detect
    predict predictor interpret interpretability explainability backup backups deprecated serialization persistence pipelines
    model_card model_cards gui serve server servers serving webui hpo""".split()
)
"""Folders and files whose code runs beside the training: tests and their helpers, measurements, what prepares data, what uses
a model when its training is over, what is for another kind of device."""
HELPERS = frozenset(("tools",))
"""Those of them that a file may be called which helps the steps; a folder that is called so holds programs."""
AFTER = frozenset(
    """
    test tests testing eval evaluate evaluation evaluator evaluators val valid validate validation validations scoring
    inference infer export exporter exporters deploy demo demos benchmark benchmarks benchmarking visualization visualizer
    detect predict predictor""".split()
)
"""Files and folders of what is run when the training, or an epoch of it, is over."""
TRAINED = frozenset(
    """
    tokenization tokenizers detect predict predictor inference eval evaluate evaluation evaluator evaluators val scoring bin
    cli scripts tools entrypoints""".split()
)
"""Those of them that people train, too, or train from: a tokenizer, what infers, programs. Where what trains stands among them,
they are not aside."""
TRAINER = re.compile(r"(^|_)train(ers?|ing)?$")
TRAINS = re.compile(rb"\.backward\((?s:.*)\.step\(")
"""What a file holds that trains: a backward pass, and behind it an optimizer's step."""
TRANSFORMING = frozenset(("transform", "transforms"))
"""Folders of what prepares data; a file that is called `transform.py` may be of a network."""
ASIDE_WORD = re.compile(
    r"(^|_)(eval|evaluation|evaluator|inference|visuali[sz](e|ation)|benchmark|demo|datasets?|tokeni[sz](e|ers?|ation)|(pre|post)_?proc(ess(ing)?)?|tensorrt|trtllm)(_|$)|"
    r"^(image_|video_)?processing(_|$)|^feature_extraction(_|$)"
)  # of a file's name
TEST_FILE = re.compile(r"^test_|_test$|^conftest$")
# What is run with arguments, and defines no test, only has the name of one: `mnist_test.py --epochs 3`.
SCRIPT = re.compile(
    rb"\A(?!.*^(?:async )?(?:def test_|class Test)).*(?:\.parse_(?:known_)?args\(|\bsys\.argv\b)", re.M | re.S
)
NO_STEPS = frozenset(
    """
    test tests testing test_utils benchmark benchmarks benchmarking profile profiling profiler loader loaders data datasets
    data_readers data_transform data_utils data_util preprocess preprocessing transforms tokenizers eval evaluate evaluation
    evaluator evaluators val validation validations scoring transform dataloaders dataloader data_loaders data_loader
    datamodules data_modules predict predictor pipelines""".split()
)
"""Those of them in which also a `forward` or a `step` is none of the training."""
PREPARING = frozenset(
    """loader loaders data datasets data_transform data_utils data_util preprocess preprocessing transforms transform
    dataloaders dataloader data_loaders data_loader datamodules data_modules""".split()
)
"""Those of what prepares data: the hooks of a step and the transforms of a batch may stand among them."""
EXPORTS = frozenset("export exporter exporters".split())  # files of what is traced to be used elsewhere
TRANSFORMS = frozenset("transform transforms augmentation augmentations".split())
"""Files of what prepares images, where they speak of torchvision; normalizing flows and augmentations on the device do not."""
FLOWS = re.compile(rb"log_?(abs_?)?det")
"""What the transforms of normalizing flows give beside a value: these prepare no data."""
LAYER = re.compile(rb"def forward\(\s*self,\s*(?!data\b|sample\b|im(g|age)s?\b|inpts?\b)\w")
DEVICE = re.compile(rb"\.device\b|\bdevice=")
"""What a file of transforms holds together that are layers of a network, or augment what is on the device."""
OF_DATA = re.compile(rb"\b(torchvision|PIL|cv2|albumentations|torch_geometric|BaseTransform)\b")
"""What files of transforms hold that prepare data: images, or graphs."""
TARGETS = frozenset("target targets label labels gt gts ground_truth y_true".split())
"""Arguments of `forward` that are left out when a model is used."""
PREDICTIONS = frozenset("y_pred y_hat pred preds prediction predictions logits output outputs".split())
"""Arguments that stand beside these where a network's answer is held against what was to come of it."""
RETURNED = re.compile(r"^return_(preds?|predictions?|hyps?|hypotheses)$")
"""Flags that ask for what a model is used for, beside its loss."""
_ASIDE_CLASS = re.compile(
    r"TritonPython|Conformal|^Guided_?Back_?[Pp]rop|Grad_?C(AM|am)(?![a-z])|Saliency|^Post[Hh]oc|BeamSearch|Viterbi\w*Decoder|^_?ECE|ECELoss$|TemperatureSetter$|^ModelWithTemperature|Onnx|ONNX|TensorRT|OpenVINO|Collat(e|or|er)|Searcher|^Visuali[sz]e|^PostProcess|Demo|(Explainer|PostProcessor|PostProcess|Post[Pp]rocessing|(?<=[a-z0-9])Preprocessing|Tracer|Profiler|Debugger|Tracker|Evaluator|EvalMonitor|Validator|Visuali[sz]er|Export|Exporter|Annotator|Logger|Inference(Mixin|Model)|Player|(Predict|Generate|Test)(Tokenizer|Step|Loop|Runner|Wrapper)|(?<!Variational)Inferencer?)$"
)  # of the same kind


@lru_cache(maxsize=10_000)  # asked for each method of a class
def is_aside(cls: str) -> bool:
    """Whether people call so a class that runs beside the training."""
    return _ASIDE_CLASS.search(cls) is not None


_DATA = re.compile(
    r"^(__getitem__|__getitems__|collate\w*|\w++(?:(?<=_collate)|(?<=_collate_fn))|get_transform\w*|worker_init\w*|pil_\w+)$"
)


@lru_cache(maxsize=10_000)  # asked for each call of a function, and for each function that is run
def is_of_data(name: str) -> bool:
    """Whether people call so a function that prepares data."""
    return _DATA.match(name) is not None


COPY = re.compile(r"[ _-]copy( ?\(?\d+\)?)?$", re.IGNORECASE)
"""How file managers call a copy of a file or folder that somebody made by hand: `model copy`, `train - Copy (2)`."""
_METRICS = re.compile(r"(^|_|torch)metrics?$")


def is_metric(folder: str) -> bool:
    """Whether people call a folder of metrics, or a file of them, so; `torch_geometric` is none."""
    return bool(_METRICS.search(folder))


_TEACHES = re.compile(r"tutorial|example|demo|^docs?$|getting|intro|walkthrough|lesson|exercise|guide|quickstart")


def teaches(name: str) -> bool:
    """Whether people call a notebook, or a folder of them, that shows how something is used."""
    return bool(_TEACHES.search(name.lower()))
