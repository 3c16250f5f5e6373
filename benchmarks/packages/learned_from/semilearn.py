"""Training steps over semilearn 0.3.2: each of its algorithms, alone and for classes that are not even, stepped as its trainer does."""

import sys
from unittest import mock

for absent in ("wandb", "aim", "progress", "progress.bar", "skimage", "skimage.transform", "aim.sdk", "aim.pytorch"):
    try:
        __import__(absent)
    except ImportError:
        sys.modules[absent] = mock.MagicMock()

import semilearn.core.algorithmbase
import semilearn.imb_algorithms.crest.crest as crest
from semilearn.algorithms import get_algorithm
from semilearn.datasets.cv_datasets.datasetbase import BasicDataset
from semilearn.imb_algorithms import get_imb_algorithm
from semilearn.lighting import get_config
from semilearn.nets.wrn.wrn import WideResNet
from torchvision import transforms

CLASSES, SIDE = 4, 32
WEAK = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()])
STRONG = transforms.Compose([transforms.RandomCrop(SIDE, 4), transforms.ToTensor()])


def pictures(args, alg, *_, **__):
    """Data sets as `get_dataset` gives them."""

    def made(count, **more):
        data = np.random.randint(0, 255, (count, SIDE, SIDE, 3), dtype=np.uint8)
        return BasicDataset(alg, data, [i % CLASSES for i in range(count)], CLASSES, transform=WEAK, **more)

    return {
        "train_lb": made(16, strong_transform=STRONG if alg == "defixmatch" else None),
        "train_ulb": made(32, is_ulb=True, strong_transform=STRONG),
        "eval": made(8),
        "test": None,
    }


semilearn.core.algorithmbase.get_dataset = crest.get_dataset = pictures


class Parallel(torch.nn.Module):
    """A model as its trainer wraps it: what it was is its module."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)


def net(num_classes, **_):
    return WideResNet(first_stride=1, num_classes=num_classes, depth=10, widen_factor=1)


def stepped(algorithm, uneven=None, before=None, epoch=0, it=0, **more):
    """A step is two batches, as `train` goes through them, with all that its hooks do after each."""

    def make():
        config = {
            "algorithm": algorithm,
            "imb_algorithm": uneven,
            "num_classes": CLASSES,
            "batch_size": 4,
            "uratio": 2,
            "num_workers": 0,
            "num_train_iter": 1000,
            "epoch": 10,
            "num_eval_iter": 10**6,
            "num_log_iter": 10**6,
            "eval_batch_size": 8,
            "gpu": 0,
            "distributed": False,
            "save_dir": "/tmp",
            "save_name": "unused",
            "net": "wrn_28_2",
            "num_labels": 16,
            **more,
        }
        args = get_config(config)
        algo = (get_imb_algorithm if uneven else get_algorithm)(args, net, None, mock.MagicMock())
        algo.model, algo.ema_model = Parallel(algo.model.cuda(args.gpu)), Parallel(algo.ema_model.cuda(args.gpu))
        if before:
            before(algo)
        algo.model.train()
        algo.epoch, algo.it = epoch, it
        algo.call_hook("before_run")
        algo.call_hook("before_train_epoch")
        held = {}

        def batch(kind):
            try:
                return next(held[kind])
            except (KeyError, StopIteration):
                held[kind] = iter(algo.loader_dict[kind])
                return next(held[kind])

        def go():
            for _ in range(2):
                algo.call_hook("before_train_step")
                data = algo.process_batch(**batch("train_lb"), **batch("train_ulb"))
                algo.out_dict, algo.log_dict = algo.train_step(**data)
                algo.call_hook("after_train_step")
                algo.it += 1

        return go

    return make


for each in (
    "fixmatch",
    "flexmatch",
    "freematch",
    "softmatch",
    "adamatch",
    "uda",
    "pseudolabel",
    "meanteacher",
    "pimodel",
    "vat",
):
    STEPS[each] = stepped(each)
for each in ("comatch", "simmatch", "mixmatch", "remixmatch", "defixmatch"):
    STEPS[each] = stepped(each)
for each in (
    "fixmatch",
    "flexmatch",
    "freematch",
    "softmatch",
    "adamatch",
    "uda",
    "comatch",
    "simmatch",
    "mixmatch",
    "remixmatch",
):
    STEPS[f"{each}_apart"] = stepped(each, use_cat=False, clip_grad=1.0)
STEPS["fixmatch_of_soft_labels"] = stepped("fixmatch", hard_label=False, p_cutoff=0.1, optim="AdamW")
STEPS["fixmatch_in_half_precision"] = stepped("fixmatch", amp=True, clip_grad=1.0)
STEPS["softmatch_of_the_labels"] = stepped("softmatch", dist_uniform=False)
STEPS["freematch_of_quantiles"] = stepped("freematch", use_quantile=True, clip_thresh=True)
STEPS["flexmatch_without_warm_up"] = stepped("flexmatch", thresh_warmup=False, p_cutoff=0.2)
for each in ("linear", "log", "exp"):
    STEPS[f"uda_{each}"] = stepped("uda", tsa_schedule=each)
STEPS["pseudolabel_sure"] = stepped("pseudolabel", p_cutoff=0.1)


def dashed(algo):
    """The threshold that its warm-up gives."""
    algo.warmup_stage = False
    algo.rho_init = algo.rho = 1.0
    hook = algo.hooks_dict["MaskingHook"]
    hook.rho_init, hook.rho, hook.rho_update_cnt = 1.0, 1.0, 0
    algo.warmup = lambda: None


STEPS["dash"] = stepped("dash", before=dashed)


@step
def crmatch():
    """It turns pictures, which come beside the others."""
    config = {
        "algorithm": "crmatch",
        "num_classes": CLASSES,
        "batch_size": 4,
        "uratio": 2,
        "num_workers": 0,
        "num_train_iter": 1000,
        "epoch": 10,
        "num_eval_iter": 10**6,
        "num_log_iter": 10**6,
        "eval_batch_size": 8,
        "gpu": 0,
        "distributed": False,
        "save_dir": "/tmp",
        "save_name": "unused",
        "net": "wrn_28_2",
    }
    algo = get_algorithm(get_config(config), net, None, mock.MagicMock())
    algo.model, algo.ema_model = algo.model.cuda(0), algo.ema_model.cuda(0)
    algo.model.train()
    algo.epoch = 0
    algo.call_hook("before_run")

    def go():
        pairs = zip(algo.loader_dict["train_lb"], algo.loader_dict["train_ulb"])
        turned = iter(algo.loader_dict["train_ulb_rot"])
        for _ in range(2):
            algo.call_hook("before_train_step")
            lb, ulb = next(pairs)
            img, img90, img180, img270, rot_v = next(turned)
            x_ulb_rot = torch.cat((img, img90, img180, img270), dim=0).contiguous()
            data = algo.process_batch(**lb, **ulb, x_ulb_rot=x_ulb_rot, rot_v=rot_v.reshape(-1))
            algo.out_dict, algo.log_dict = algo.train_step(**data)
            algo.call_hook("after_train_step")
            algo.it += 1

    return go


@step
def supervised():
    config = {
        "algorithm": "fullysupervised",
        "num_classes": CLASSES,
        "batch_size": 4,
        "num_workers": 0,
        "num_train_iter": 1000,
        "epoch": 10,
        "num_eval_iter": 10**6,
        "num_log_iter": 10**6,
        "eval_batch_size": 8,
        "gpu": 0,
        "distributed": False,
        "save_dir": "/tmp",
        "save_name": "unused",
        "uratio": 1,
    }
    algo = get_algorithm(get_config(config), net, None, mock.MagicMock())
    algo.model, algo.ema_model = algo.model.cuda(0), algo.ema_model.cuda(0)
    algo.model.train()
    algo.call_hook("before_run")

    def go():
        algo.call_hook("before_train_step")
        algo.out_dict, algo.log_dict = algo.train_step(**algo.process_batch(**next(iter(algo.loader_dict["train_lb"]))))
        algo.call_hook("after_train_step")
        algo.it += 1

    return go


for each in ("abc", "debiaspl", "tras"):
    STEPS[f"uneven_{each}"] = stepped("fixmatch", each, epoch=5, tras_warmup_epochs=0)
for each in ("flexmatch", "remixmatch"):
    STEPS[f"uneven_abc_of_{each}"] = stepped(each, "abc")


def mixed(algo):
    """What it knows of the classes after its warm-up."""
    algo.mixup_prob = [
        (max(algo.lb_cnt_per_class) - i) / max(algo.lb_cnt_per_class) + 0.5 for i in algo.lb_cnt_per_class
    ]


STEPS["uneven_cossl"] = stepped("fixmatch", "cossl", before=mixed, epoch=1)
STEPS["uneven_daso"] = stepped("fixmatch", "daso", daso_num_pretrain_iter=2, daso_num_pl_dist_iter=1)
STEPS["uneven_darp"] = stepped("fixmatch", "darp", epoch=5, darp_warmup_epochs=0)


def cutoffs(algo):
    """What its look at all data gives after an epoch."""
    hook = algo.hooks_dict["MaskingHook"]
    hook.update_s_at_start = hook.before_train_epoch = lambda *_: None
    hook.s = torch.full((CLASSES,), 0.5).cuda()


STEPS["uneven_adsh"] = stepped("fixmatch", "adsh", before=cutoffs)


STEPS["uneven_saw"] = stepped("fixmatch", "saw")


def generation(algo):
    algo.gen, algo.cur_dist_align_t = 1, 0.7


STEPS["uneven_crest"] = stepped("fixmatch", "crest", before=generation)
