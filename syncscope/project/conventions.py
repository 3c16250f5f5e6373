"""What people call things: every name that says something by convention alone; what runs beside the training is called so in
`beside_training`, its folders, files and classes, and in `cold_names`, its functions.

A convention is a guess: what follows from it has confidence 1 or 2, and any fact outranks it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from syncscope.model.heat import Reason
from syncscope.project import hooks

# -- values

# Parameters that are tensors more often than not.
TENSORS = frozenset(
    """x input inputs logits target targets label labels mask attention_mask input_ids hidden_states pred preds
    prediction predictions loss scores boxes embeddings features feats images tensor query key value keys values
    queries z h""".split()
)
OF_DICTS = frozenset("key keys value values".split())  # tensors only beside a query

# The sizes of a packed sequence, and the counters of an optimizer, which are only read where they are on the host.
OF_THE_HOST = frozenset(("batch_sizes", "state_steps", "dev_state_steps", "device_state_steps"))

# Arguments of `forward` that are called like a number, a flag or a name of something are no tensors.
_COUNTS = re.compile(
    r"(^|_)(num|n|number|count|size|sizes|shape|dim|dims|dimensions|height|width|length|level|layers?|heads?|scale|factor|step|"
    r"epoch|seed|type|mode|name|names|idx|temperature|reduction|stride|eps|axis|kwargs|config)$|"
    r"^(num|n|max|min|use|is|has|with|return|output|do|should)_|^[hwijk]$|_list$"
)

# What models of transformers and of those who follow it give back, by its attributes.
MODEL_OUTPUTS = frozenset("loss logits last_hidden_state hidden_states pooler_output".split())

# What is called so when nothing else is known of it.
MODELS = frozenset(
    """model net network criterion loss_fn loss_func loss_fct backbone encoder decoder netD netG discriminator
    generator""".split()
)
OF_OPTIMIZER = re.compile(r"state$|(^|_)group$")  # what it keeps, for each parameter and for some together
GRAD_SCALERS = frozenset("scaler grad_scaler _scaler amp_scaler loss_scaler".split())
LAUNCHERS = ("accelerator", "fabric", "strategy")  # endings: what runs a loop on many devices
_SELDOM = re.compile(
    r"(^|_)(debug\w*|verbose|verbosity|oracle|dump|dry_run|profiling|inference|infer|onnx|scripting|tracing|exporting)(_|$)|"
    r"^_?(should|do|need|needs|must|is|if|to|will|want|time_to)_(log|print|report|save|plot|visuali[sz]e|eval|evaluate|validate|dump|"
    r"record|summari[sz]e|display|monitor)(_|$)|^is_best|_(log|print|save|eval)_(step|iter|iteration)$|^logging$|"
    r"^(is_)?(test|testing|eval|evaluate|evaluation)(_only|_mode)?$"
)

TALKS = re.compile(r"^_?verbose$")  # a flag by which a loop says how it goes
_LOOKS_CLOSER = re.compile(r"(^|_)(stats|statistics|diagnostics|histograms?)$|(return|with|log|collect)_info$")

BARS = frozenset(("tqdm", "trange"))  # of progress, which go over what they are given
_LOADER = re.compile(
    r"(^|_)(((data|train)_?)?loader|(train_)?dl)s?(_?iter(ator)?)?(_(un)?lab\w*)?$|_(data)?loader$|^loader_|"
    r"(^|_)data_?loader_tr(ain(ing)?)?$|"
    r"^_?iter_(train|loader|data|replay|batch)|(^|_)(data|batch|replay|buffer|train|dataset)_?iter(ator)?(_(un)?lab\w*)?$",
    re.IGNORECASE,
)

# Names of text that no tensor's use is learnt from: modules, objects, and what may be anything.
NOT_TENSORS = frozenset("F self cls torch np model data None True False ".split())
NOT_TENSORS_UNDER = ("torch", "F.", "nn.", "np.", "math.", "numpy", "random.", "tf.", "jnp.", "lib.")
NOT_TENSORS_ENDING = ("shape", "size", "dtype", "accelerator", "nvec")

# Other kinds of arrays, as they are imported and as they are named.
OTHER_ARRAY_IMPORTS = (  # each begins with a word that is searched for by itself, in a fifth of the time of all in turn
    re.compile(r"import (?:numpy|jax|tensorflow|cupy|pandas|mlx|paddle|mindspore|oneflow|jittor|xarray|cv2)"),
    re.compile(r"from (?:numpy|tinygrad)"),
)
OTHER_ARRAYS = (  # each is searched for by itself, in a fifth of the time of all in turn
    *(
        re.compile(rf"{word}(?<!\w{word})\b")
        for word in "np numpy jnp jax tf cp cupy pd pandas mx mlx paddle oneflow jittor xr cv2 PIL".split()
    ),
    re.compile(r"array(?<=[Nn][Dd]array)"),
)


def is_number(name: str) -> bool:
    """Whether an argument is called like a number, a flag or a name."""
    return bool(_COUNTS.search(name))


_MODES = frozenset("mode split phase stage".split())
_OF_EVALUATION = frozenset("test dev val valid validation eval evaluate evaluation predict inference infer".split())


def asks_for(name: str, text: object, training: bool) -> bool:
    """Whether a flag of this name that is this text says that it is trained, or that it is evaluated: `mode == "dev"`."""
    if name not in _MODES or not isinstance(text, str):
        return False
    return text.lower() in (("train", "training") if training else _OF_EVALUATION)


def of_evaluation(loader: str) -> bool:
    """Whether a loader is called by what is not trained on: `val_loader`, `test_dataloader`."""
    return not _OF_EVALUATION.isdisjoint(loader.lower().split("_"))


def seldom(name: str) -> bool:
    """Whether people call so what they ask before something rare: a log, a picture, a look at what went wrong."""
    return bool(_SELDOM.search(name.lower()))


def looks_closer(name: str) -> bool:
    """Whether people call a flag so that asks for more than the result, to look at: `collect_stats`, `return_info`."""
    return bool(_LOOKS_CLOSER.search(name.lower()))


def are_names(name: str) -> bool:
    """Whether people call texts so, whatever they are made of: `loss_names = tuple(losses)`."""
    return name.endswith("_names") or name == "names"


def is_size(name: str) -> bool:
    """Whether people call so what a shape is made of, or shapes."""
    return name.rstrip("s").endswith(("size", "shape"))


def counts(name: str) -> bool:
    """Whether people call so what a batch is counted by, `data.num_graphs`: a number of Python."""
    return name.startswith("num_") or name == "batch_size"


@lru_cache(maxsize=10_000)  # asked for each iteration and call
def is_loader(name: str) -> bool:
    """Whether people call a loader so."""
    return bool(_LOADER.search(name))


def is_epoch(name: str) -> bool:
    """Whether people call so what counts epochs, or what makes one."""
    return "epoch" in name.lower()


_LIKELIHOOD = re.compile(r"^_?neg(ative)?_\w*likelihood|(^|_)nll$")
_OF_A_LOSS = re.compile(r"_(args|kwargs|params|names?|config|cfg|types?|cls|class|history|path|file|report)$")


@lru_cache(maxsize=10_000)  # asked for every function of a project, several times
def is_loss(name: str) -> bool:
    """Whether people call a loss so, or a negative likelihood, and not what is known of one: `loss_args`, `loss_name`."""
    name = name.lower()
    return ("loss" in name or _LIKELIHOOD.search(name) is not None) and not _OF_A_LOSS.search(name)


GIVES_BATCHES = frozenset("sample sample_batch get_batch next_batch random_batch".split())
_HOLDS_BATCHES = re.compile(r"(buffer|replay|memory|dataset|loader)$")


def holds_batches(name: str) -> bool:
    """Whether people call so what gives batches when it is asked: a buffer of what was played, a data set."""
    return bool(_HOLDS_BATCHES.search(name.lower()))


_LOSSES = re.compile(r"^(\w+_)?loss(es|(es)?_?(dict|values|terms|items|outputs))$")


@lru_cache(maxsize=10_000)
def are_losses(name: str) -> bool:
    """Whether people call a dict of losses so, as a model gives them: `losses`, `loss_dict`."""
    return bool(_LOSSES.search(name))


_POSITIONS = re.compile(
    r"(^|_)(idxs?|ind|inds|index|indexes|indices|ids?|perm|permutation|positions|rows|cols|nodes|subset)$"
)
# Of predictions and targets, by SciPy's assignment.
MATCHED = frozenset("indices matched_indices match_indices".split())
_MATCHING = re.compile(r"(Loss|Criterion|Matcher)$|^loss|_loss|permutation_idx")


def is_positions(name: str) -> bool:
    """Whether people call whole numbers so that index something."""
    return bool(_POSITIONS.search(name.lower()))


def of_a_matching(owner: str, function: str, name: str) -> bool:
    """Whether an argument is what a bipartite matching on the host has given: pairs of positions, for each image."""
    return name in MATCHED and bool(_MATCHING.search(owner) or _MATCHING.search(function))


def is_mask(name: str) -> int:
    """How surely people call a mask so: 2, 1 when a list of positions may be called so as well, or 0."""
    name = name.lower()
    if name in ("keep", "valid", "to_keep", "is_valid"):
        return 2
    if "mask" not in name or "attention" in name:
        return 0
    return 1 if any(part in name for part in ("idx", "ids", "ind")) else 2


# What people import by a star, from a file that imports it for all.
BY_STAR = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "np": "numpy", "numpy": "numpy"}

# -- classes

# Bases that cannot be seen: with a `forward`, they are nn.Modules.
MODULE_ENDINGS = tuple(
    """Module Model Layer Block Net Loss Head Attention Encoder Decoder Embedding MLP Model_""".split()
)
MODULES = frozenset(("LightningModule", "PreTrainedModel"))
MAKERS = frozenset("__init__ __post_init__ __new__".split())
MADE_ONCE = tuple(
    """Module Model Layer Block Net Loss Head Attention Encoder Decoder Embedding MLP Network Optimizer Trainer Config
    Configuration Dataset Loader DataModule Callback Logger Error Exception Warning Scheduler Manager Writer Meter Metric
    Parameter Enum Thread Process Pool Policy Agent Env Environment Runner Engine""".split()
)  # endings of classes, and of what they are derived from, whose objects are made before the training
# ... and methods of such
MADE_ONCE_BY = frozenset("forward training_step __getitems__ __iter__ __enter__ step".split())
DATA_CLASSES = ("Dataset", "Collator", "Collate", "Collater", "Batcher")  # endings: their values live on the host
# never in the step
PREPARING_CLASSES = *DATA_CLASSES, "Transform", "Tokenizer", "Processor", "ProcessingStrategy", "FeatureExtractor"

# -- functions

KERNELS = frozenset("jit njit vectorize guvectorize".split())  # decorators: it is no Python that runs

# Methods of an nn.Module whose arguments are tensors.
FORWARD = frozenset(
    """forward training_step validation_step test_step predict_step shared_step _shared_step compute_loss""".split()
)
SET_UP = tuple("__init__ __post_init__ setup build reset_parameters".split())  # they set what an object holds

HOT = {
    "forward": Reason.NAMED("forward"),
    "__call__": Reason.NAMED("__call__"),
    "training_step": Reason.STEP(),
    "train_step": Reason.STEP(),
    "train_batch": Reason.STEP(),
    "_train_batch": Reason.STEP(),
    "train_one_epoch": Reason.LOOP(),
    "train_epoch": Reason.LOOP(),
    "_train_epoch": Reason.LOOP(),
    "tr_epoch": Reason.LOOP(),
    "run_epoch": Reason.LOOP(),
    "_run_epoch": Reason.LOOP(),
    "train": Reason.LOOP(),
    "training_loop": Reason.LOOP(),
    "fit": Reason.LOOP(),
    "step": Reason.NAMED("step"),
    "compute_loss": Reason.IN_LOSS(),
    "get_loss": Reason.IN_LOSS(),
    "backward": Reason.NAMED("backward"),
}
LOOPS = frozenset(name for name, heat in HOT.items() if heat.reason is Reason.LOOP)
# What the base class of an environment calls, and the loop around it of an agent, in each of its steps.
HOOKS = frozenset(
    "_reset _step step_async step_wait draw_action draw_actions message message_and_aggregate edge_update".split()
)
PACES = re.compile(r"^(time|asyncio|cv2|plt|pyplot)$|(^|_)envs?$")  # whose `sleep`, `imshow` or `render` lets one watch
OVER_BATCHES = re.compile(r"loader|batches|pbar|progress|(^|_)(dl|epoch)$")  # what goes over all batches of an epoch
CLOCK = re.compile(r"(^|_)(time|now|perf_counter|monotonic)(_ns)?$")  # what tells the time, or has it
CONNECTED = re.compile(r"(^|_)(conn|connection|socket|client|viewer|gui)$")  # there as long as somebody looks on
DIVISIBLE = frozenset("divisible_by is_divisible is_divisible_by".split())  # functions that ask for a remainder of 0
FIRST = re.compile(r"^(is_)?first_(pass|time|run|call)$")  # a flag of what has not been done before
OWN_COUNTER = re.compile(
    r"^_?((global|train|training|num|n)_)?(steps?|iters?|iterations?|updates?|calls|forward_calls)(_count(er)?)?$"
)  # of an object, which is kept from one step to the next
MADE = re.compile(r"(^|_)(initiali[sz]ed|initted|inited|is_init|is_built)$")  # a flag of what is made the first time
STATISTICS = re.compile(
    r"^_?log_(\w+_)?(norms|gradients?|weights?|param(eter)?s|updates|fields|stat(istic)?s|histograms?|config(uration)?)$"
)  # functions that say much at once to a log, where they give nothing
WEIGHT = re.compile(r"(^|_)(weight|scale|coeff?|coefficient|factor|lambda|beta|alpha|gamma)$")  # 0 switches a loss off
# what is 0 where there is nothing
AMOUNT = re.compile(r"^(numel|len)$|(^|_)(sum|nums?|counts?|count_nonzero|total)(_|$)")
MANY = re.compile(r"^(range|trange|tqdm)$|batch|loader|epoch|sample")  # what a loop over many steps goes over
WEIGHTS = re.compile(r"^(param_groups|(named_)?(parameters|buffers|modules|children)|state_dict|params)$")
"""What a model or an optimizer is made of."""
# what an epoch is made of
WHOLE_PART = re.compile(r"^_?(update|learn|train|fit|rollout|roll_out|collect)(_\w+)?$|epoch")
# of one update
INNER_EPOCHS = re.compile(r"(^|_)(update|ppo|inner|sgd|opt\w*|policy|critic|actor|value|[kv])_epochs?$")
# ... which holds a backward pass
STEP_CALL = re.compile(r"^(train(ing)?_((one|on)_)?(step|batch)|optimize_parameters)$")
STEP = re.compile("backward|batch|step|train|update|learn|loss")  # what a training loop calls


OF_ANY_MODULE = frozenset(("state_dict", "load_state_dict"))
"""Methods of torch's own modules and optimizers, which a call on anything means: few classes of a project have them."""


def never(name: str, owner: str) -> bool:
    """Whether no call says that a function, or a method, is part of a step: Python calls it, or whoever runs all steps."""
    dunder = name[:2] == name[-2:] == "__"
    return dunder or hooks.around_steps(name) or _draws_or_decodes(owner) or _NEVER.search(name) is not None


@lru_cache(maxsize=10_000)  # asked for each method of a class
def _draws_or_decodes(cls: str) -> bool:
    return DRAWS.match(cls) is not None or _DECODERS.search(cls) is not None


# What stands in where there is no batch, and what uses a model on recordings.
_NEVER = re.compile(r"(^|_)(dummy|annotate)(_|$)")
# What draws pictures from a diffusion model, in every copy of the sources of Stable Diffusion.
DRAWS = re.compile(r"(DDIM|PLMS|DPMSolver|UniPC)_?Sampler$|(DPM_Solver|UniPC|NoiseScheduleVP)$")
_DECODERS = re.compile(r"Viterbi\w*Decoder|BeamSearch")
PARTLY = frozenset((Reason.MAYBE, Reason.OF_LOSS))
"""What a name says of what may run in every step: what speaks of it says more."""
OPEN = PARTLY | {Reason.LOSS}
SOFT = frozenset(
    (
        Reason.SET_UP,
        Reason.RESULT,
        Reason.METRIC,
        Reason.CHECK,
        Reason.TO_HOST,
        Reason.NEW_WEIGHTS,
        Reason.EVALUATION,
        Reason.DECODING,
        Reason.SAMPLES,
        Reason.NO_GRAD,
        Reason.ASIDE,
        Reason.LOG,
    )
)
"""What a name, a folder or `no_grad` says, until something that runs in steps is seen to call it."""
# Methods that say what seldom happens.
WARNINGS = frozenset("warn warning warning_once error exception critical".split())
# What says something to people.
NOTICES = WARNINGS | frozenset("print info debug log write print_rank_0 logger".split())
NOISING = frozenset("add_noise scale_noise get_velocity".split())  # what training asks of a noise scheduler
PREPARERS = re.compile(r"(^|_)(tokenizer|tokenize|processor|feature_extractor)$")
"""What makes tensors of text and images, on the host."""
GENERATION = re.compile(
    r"^_?generate(_(completions?|rollouts?|responses?|sequences?|text|tokens?|experience|samples?)|$)|^make_experience$"
)
"""Calls that run a model once for each token of what they give."""
SCORES = re.compile(
    r"_(score|curve)$|^(confusion_matrix|classification_report|pearsonr|spearmanr|kendalltau|cohen_kappa_score)$"
)
"""What is computed of labels and predictions on the host."""
SOLVERS = re.compile(
    rb"\b(linear_sum_assignment|lapjv|maximum_bipartite_matching|min_weight_full_bipartite_matching)\b"
)
"""What is found on the host alone: who calls it has to copy its costs."""


def is_result_of(owner: str, name: str) -> bool:
    """Whether a method tells what a meter or a metric has gathered, once an epoch."""
    return owner.endswith(("Meter", "Metric", "Metrics")) and "update" not in name and name not in FORWARD


def is_inference(owner: str, name: str) -> bool:
    """Whether it is of a pipeline that uses a model, and does not train it, or of the keys and values of tokens before."""
    uses = owner.endswith(("Pipeline", "PipelineLike")) or "kvcache" in f"{owner}_{name}".lower().replace("_", "")
    return uses and not re.search("train|loss", name)


def makes_distribution(name: str) -> bool:
    """Whether people call so a class, which makes one where a distribution is asked for: `cls`, `distribution_class`."""
    return name[:1].isupper() or name.endswith(("cls", "_class", "_type")) or is_distribution(name)


def of_pairs(name: str) -> bool:
    """Whether people call so a tensor of two rows of positions, the ends of edges: a row of it is no number."""
    return bool(re.search(r"edge_ind|(^|_)edge$|edges$|pairs$", name.lower()))


_DISTRIBUTION = re.compile(r"(^|_)(dist|distr|dists|distrib|distribs|distribution|distributions|pi|prior|posterior)$")


def is_distribution(name: str) -> bool:
    """Whether people call a distribution of `torch.distributions` so; a flow has a density as well, and checks nothing."""
    return bool(_DISTRIBUTION.search(name.lower()))


# Arguments that are gone through once.
DATA_SETS = frozenset(
    "dataset datasets data_set train_dataset eval_dataset adata mdata show_progress_bar show_progress".split()
)


_INITIALISES = re.compile(r"^(_?init_?weights?|_?init_\w+|_init\w*|reset_parameters)$")


def initialises(name: str) -> bool:
    """Whether a function gives a module its first weights, which most often happens on the host."""
    return bool(_INITIALISES.match(name))


_MATCHED = re.compile(r"permutation_(idx|indices)$")


def of_a_matcher(name: str) -> bool:
    """Whether a function hands on what a Hungarian matcher found, as DETR and its kin call it: SciPy's, on the host."""
    return bool(_MATCHED.search(name))


def waits(name: str) -> bool:
    """Whether a function waits for the device, whatever it holds."""
    return "synchronize" in name
