"""How people call functions that run before, after or beside the steps: a guess that what is seen to call them outranks."""

import re
from functools import lru_cache


def _one_of(*names: str) -> re.Pattern[str]:
    """What matches a name that is one of these, each an expression for the whole of it."""
    return re.compile(rf"^({'|'.join(' '.join(names).split())})$")


_PROGRAMS = r"main \w+_main extra_repr parse_args get_config\w* \w*state_dict\w* reset_parameters"
_KEEP = r"load\w* save\w* from_pretrained (\w+_)?create_(impl|models?|networks?|optimizers?)"
_TELL = r"""
    _?write_(audio|images?|videos?|files?|wav|json|csv|text|html) (audio|image|video|wav|file)_write print_\w+ summar\w+
    report\w* benchmark\w* profile\w* peak_\w*memory\w* test_\w+
"""
_OF_STEPS = r"(?!_(\w+_)?(actions?|samples?|noises?|random|ind(ex|ices))(_|$))"  # what an agent or a diffusion draws

CACHES = re.compile(r"(^|_)(cached?|memoi[sz]ed?)(_|$)")
"""Decorators that keep what a function gives, `@cached_function`."""
SET_UP = _one_of(
    _PROGRAMS, _KEEP, _TELL,
    r"""
    __init__ __post_init__ __setstate__ __getstate__ __repr__ __str__ __eq__ __ne__ __hash__ __format__ describe
    __getattr__ __getattribute__ __dir__ __copy__ __deepcopy__ __reduce__ __reduce_ex__
    init setups? _?setup_\w+ build\w*
    init_(\w+_)?(weight|param(eter)?)s?(_\w+)? _init\w* \w+_init _?maybe_init\w* _?(re_?)?initiali[sz]e\w* make_samplers?
    set_\w+ _?\w+_and_freeze _?(un)?freeze_\w+
    _set_(networks?|models?|optimizers?|metrics|callbacks|param(eter)?s?(_\w+)?) add_(edge|node|vertex|layer|module)s?
    _build_(\w+_)?cache _?set_(\w+_)?cache _?pre_?compute(_\w+)? _?(init|make|create|allocate)_(\w+_)?caches?
    _?(de)?seriali[sz]e(_\w+)? (en|dis)able_\w+ (qdq|quant)_weights?(_\w+)? (un)?pack_(tensor|weight)\w* cal(c|culate)?_scales?
    make_inputs\w* (get|make|create)_(sample|dummy|example)_inputs? \w+_schedule get_\w*(time_?steps|sigmas)
    dump\w* export\w* convert\w* replace_\w+ _?finali[sz]e_\w+ (de)?compress\w* synchroni[sz]e_between_processes
    patch_(?!embed|unembed|merg|partition|expan|drop|norm)\w+ _?pre_?process tokenize (\w+_)?kmeans(_\w+)? \w+_inv_freqs?
    _?compute_\w*rope_param\w*
    plot\w* show _?show_\w+ visuali[sz]e\w* explain\w* \w*saliency\w*
    add_(image|video|histogram|figure|audio|scalar)s? _?create_(logs|figures)
    log (log|_?write)_(records|metrics|epoch\w*|images?|results?) close (get_|measure_|compute_)?latency _?assert_\w+
    """,
    rf"draw{_OF_STEPS}\w*",
)  # fmt: skip
"""What makes, keeps, shows or measures what is trained."""
_BESIDE = _one_of(
    _PROGRAMS, _KEEP, _TELL,
    r"""
    _?pre_?compute(_\w+)? _?(build|set)_(\w+_)?cache (\w+_)?inv_freqs? _?compute_\w*rope_param\w*
    __?init_\w* _?init_weights\w* _?setup\w* push_to_hub _?plot\w* _?show\w* _?visuali[sz]e\w* _?export\w* _?log _?log_\w+
    _?compute \w+_compute \w*(viterbi|beam_search|greedy_search|greedy_deco|sample_loop)\w*
    _?(eval|evaluate|evaluation|validation|test|inference|generate|transcribe|fit|train)(_(one_)?\w+)? _?predict_\w+
    validate _?validate_(one_)?(epochs?|model|network|loop|steps?|batch|all|dataset|and_\w+)
    """,
    rf"_?draw{_OF_STEPS}_\w+",
)  # fmt: skip


@lru_cache(maxsize=10_000)  # asked for all that a word may mean, whoever says it
def beside(name: str, owner: str) -> bool:
    """Whether people seldom mean so a part of a step, a function or a method: only a call that can mean nothing else says that
    it is one. A metric's function may compute in each.
    """
    if name.startswith("__"):
        return False
    return _BESIDE.match(name) is not None and (owner != "" or not name.endswith("_compute"))


CALIBRATES = re.compile(r"^_?(((train|fit|run)_)?calibrat(e|ion)|(fit|set)_temperature)$")
"""Functions that fit what a model says to what comes of it, when it is trained, though they make a backward pass."""
MEASURES = re.compile(r"^_?(benchmark|profile|measure|latency|test)(_|$)")
"""Functions that are no part of the training, though they make a backward pass in a loop to see how long it takes."""
_WORDS_OF_EVALUATION = r"""
    eval evaluate evaluation valid validate validation test predict forecast infer inference post_?process\w* dummy probe
    non_max(imum)?_suppression rescor(e|ing) (beam|greedy)_(search|decode|decoder|decoding) sample_loop ddim_sample p_sample
    conditional_sample sample_actions tiled_decode annotate retrieve rerank recommend
    get_(bboxes|seg_masks|results?|predictions)
"""
EVALUATION = re.compile(
    rf"(^|_)({'|'.join(_WORDS_OF_EVALUATION.split())})(_|$)|"
    r"^_?(generate|transcribe|synthesi[sz]e)$|^make_experience$|_nms$|(^|_)human_readable$|^attack$|(^|_)sampling_(outputs?|loop|results?)$|(^|_)viterbi(_|$)|(^|_)top_[akp]_(\w+_)?(logits|filter\w*|sampl\w+)$|(^|_)detect_(faces?|objects?|images?)$|"
    r"^_?generate_(and_\w+|completions?|rollouts?|responses?|sequences?|text|vllm|single_turn)$"
)
# What evaluates what it trains: its steps are in there.
TRAINS_TOO = re.compile(r"^_?(train|fit)_(and_[a-z]+|(eval|evaluate|valid|validate|test)(_(step|epoch|loop))?)$")
REPARAMETRIZATION = re.compile(
    r"(^|_)(un)?merge(_(and|all|lora|adapters?|weights?|params?|model|kernel|conv|bn|qkv|layers?|branch)|$)|^_?(fuse(?!d|_update|_backward)|prune|quantize|dequantize)\w*$|_before_merge$|delta_weight|"
    r"^_?reparam(eteri[sz]e)?_(model|module|net|layer|weights?)$|^switch_to_deploy$|(^|_)kernel_bias$|^(get_)?rep_params?$"
)
RESULT = re.compile(
    r"^_?compute$|_compute$|(^|_)importances?$|^(get|calculate|compute)_(\w+_)?(accuracy|precision|recall|metrics?|ndcg|auc|f1|wer|cer|bleu|perplexity)(_|$)"
)  # of a metric: once an epoch, where its `update` runs in every step
CHECK = re.compile(r"^_*((check|verify|ensure|reject|raise_if|warn_if)_|detect_(nan|inf|anomal)[a-z]*(_|$))")
"""Functions that are asked whether all is well: they wait because they are meant to."""
TO_HOST = re.compile(
    r"^(_?(as|to)_((optional|python)_)?(floats?|ints?|numbers?|scalars?|lists?|dicts?|json|numpy|np|python|cpu|host|scipy\w*)|"
    r"\w+(?<!from)_numpy|_?(?!to_)\w+_(on_)?cpu|(\w+_)?(as|to)_(df|data_?frame|pandas|html|text|strings?|"
    r"csv|yaml|pil|xarray|rdmol|smiles|trimesh|networkx|networkit|igraph))$"
)
"""Functions that are asked for numbers or arrays of the host: whoever calls them wants to wait."""
