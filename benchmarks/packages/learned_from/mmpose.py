"""Training steps over mmpose 1.3.2: models, codecs, pipelines and optimizers of its own configs, on random pictures.

Each step is mmengine's `model.train_step` of two pictures that the config's own pipeline has made and that were
collated on the host. mmcv's compiled operators are not there, and models that need them are left out.
"""

import importlib.abc
import importlib.machinery
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np

warnings.filterwarnings("ignore")


class Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages that no step needs, but that are imported."""

    names = ("xtcocotools", "pycocotools", "chumpy", "mmcv._ext")

    def find_spec(self, name, path=None, target=None):
        if name.startswith(self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return mock.MagicMock(name=spec.name)

    def exec_module(self, module):
        module.__path__ = []


sys.meta_path.append(Missing())

from mmengine.config import Config  # noqa: E402
from mmengine.dataset import Compose, pseudo_collate  # noqa: E402
from mmengine.logging import MessageHub  # noqa: E402
from mmengine.optim import build_optim_wrapper  # noqa: E402
from mmengine.registry import init_default_scope  # noqa: E402

import mmpose  # noqa: E402
from mmpose.datasets.datasets.utils import parse_pose_metainfo  # noqa: E402
from mmpose.registry import DATASETS, MODELS  # noqa: E402
from mmpose.utils import register_all_modules  # noqa: E402

register_all_modules()
CONFIGS = Path(mmpose.__file__).parent / ".mim" / "configs"
RANDOM = "Albumentation Mosaic YOLOXMixUp PhotometricDistortion LoadImage".split()
META = "upper_body_ids lower_body_ids flip_pairs dataset_keypoint_weights flip_indices".split()


def without_weights(config):
    """The config, without weights that are downloaded."""
    if isinstance(config, dict):
        held = config.get("init_cfg")
        if isinstance(held, dict) and held.get("type") == "Pretrained":
            config["init_cfg"] = None
        for each in config.values():
            without_weights(each)
    elif isinstance(config, (list, tuple)):
        for each in config:
            without_weights(each)


def picture(meta, people, rng):
    """A picture with people in it, as a dataset of COCO's form gives it."""
    height, width, points = 240, 320, meta["num_keypoints"]
    low = rng.uniform(5, 100, (people, 2))
    box = np.concatenate([low, low + rng.uniform(80, 130, (people, 2))], 1).astype(np.float32)
    keypoints = (
        rng.uniform(0, 1, (people, points, 2)) * (box[:, None, 2:] - box[:, None, :2]) + box[:, None, :2]
    ).astype(np.float32)
    return {
        "img": rng.integers(0, 256, (height, width, 3), dtype=np.uint8),
        "img_shape": (height, width),
        "ori_shape": (height, width),
        "img_path": "picture.jpg",
        "img_id": 0,
        "id": 0,
        "bbox": box,
        "bbox_score": np.ones(people, np.float32),
        "keypoints": keypoints,
        "keypoints_visible": np.ones((people, points), np.float32),
        "category_id": np.ones(people, np.int64),
        "area": np.prod(box[:, 2:] - box[:, :2], 1) * 0.5,
        "iscrowd": np.zeros(people, np.int64),
        "invalid_segs": [],
        "dataset_name": meta["dataset_name"],
        **{name: meta[name] for name in META},
    }


def metainfo(dataset):
    if "metainfo" in dataset:
        return parse_pose_metainfo(dict(dataset.metainfo))
    return parse_pose_metainfo(DATASETS.get(dataset.type).METAINFO)


def from_config(path, people=1, batch=2, sample=picture, **changes):
    """A step of the model of a config."""
    init_default_scope("mmpose")
    config = Config.fromfile(CONFIGS / path)
    config.merge_from_dict(changes)
    without_weights(config.model)
    dataset, rng = config.train_dataloader.dataset, np.random.default_rng(0)
    meta = metainfo(dataset)
    for each in dataset.pipeline:
        each.pop("extra_mapping_labels", None)  # of an older version: it is the default by now
    pipeline = Compose([each for each in dataset.pipeline if each["type"] not in RANDOM])
    batches = pseudo_collate([pipeline(sample(meta, people, rng)) for _ in range(batch)])
    model = MODELS.build(config.model).to("cuda").train()
    model.init_weights()
    for name, value in (("epoch", 0), ("max_epochs", 300), ("iter", 0), ("max_iters", 3000)):
        MessageHub.get_current_instance().update_info(name, value)
    optimizer = build_optim_wrapper(model, dict(config.optim_wrapper))
    return lambda: model.train_step(
        {"inputs": list(batches["inputs"]), "data_samples": [each.clone() for each in batches["data_samples"]]},
        optimizer,
    )


TOPDOWN = "body_2d_keypoint/topdown_heatmap/coco/td-hm_"
REGRESSION = "body_2d_keypoint/topdown_regression/coco/td-reg_"
SMALL = {"model.backbone.depth": 18, "model.head.in_channels": 512}
PATHS = {
    "heatmap_mobilenet": TOPDOWN + "mobilenetv2_8xb64-210e_coco-256x192.py",
    "heatmap_rsn": TOPDOWN + "rsn18_8xb32-210e_coco-256x192.py",
    "heatmap_litehrnet": TOPDOWN + "litehrnet-18_8xb64-210e_coco-256x192.py",
    "heatmap_vipnas": TOPDOWN + "vipnas-mbv3_8xb64-210e_coco-256x192.py",
    "heatmap_shufflenet": TOPDOWN + "shufflenetv2_8xb64-210e_coco-256x192.py",
    "heatmap_swin": TOPDOWN + "swin-t-p4-w7_8xb32-210e_coco-256x192.py",
    "regression_rle": REGRESSION + "mobilenetv2_rle-pretrained-8xb64-210e_coco-256x192.py",
    "simcc": "body_2d_keypoint/simcc/coco/simcc_mobilenetv2_wo-deconv-8xb64-210e_coco-256x192.py",
    "rtmpose": "body_2d_keypoint/rtmpose/coco/rtmpose-t_8xb256-420e_coco-256x192.py",
    "rtmw": "wholebody_2d_keypoint/rtmpose/cocktail14/rtmw-m_8xb1024-270e_cocktail14-256x192.py",
    "face_adaptive_wing": "face_2d_keypoint/topdown_heatmap/wflw/td-hm_hrnetv2-w18_awing-8xb64-60e_wflw-256x256.py",
}
RESNETS = {
    "heatmap_dark": TOPDOWN + "res50_dark-8xb64-210e_coco-256x192.py",
    "regression": REGRESSION + "res50_8xb64-210e_coco-256x192.py",
    "integral": "body_2d_keypoint/integral_regression/coco/ipr_res50_8xb64-210e_coco-256x256.py",
    "integral_debias": "body_2d_keypoint/integral_regression/coco/ipr_res50_debias-8xb64-210e_coco-256x256.py",
    "dsnt": "body_2d_keypoint/integral_regression/coco/ipr_res50_dsnt-8xb64-210e_coco-256x256.py",
    "face_wing": "face_2d_keypoint/topdown_regression/wflw/td-reg_res50_wingloss_8xb64-210e_wflw-256x256.py",
}
PEOPLE = {
    "yoloxpose": "body_2d_keypoint/yoloxpose/coco/yoloxpose_tiny_4xb64-300e_coco-416.py",
    "rtmo": "body_2d_keypoint/rtmo/coco/rtmo-s_8xb32-600e_coco-640x640.py",
    "cid": "body_2d_keypoint/cid/coco/cid_hrnet-w32_8xb20-140e_coco-512x512.py",
}
VISIBLE = TOPDOWN[:-1] + "-vis_res50_8xb64-210e_coco-aic-256x192-merge.py"
STEPS["visible"] = lambda: from_config(VISIBLE)  # noqa: F821
for name, path in PATHS.items():
    STEPS[name] = lambda path=path: from_config(path)  # noqa: F821
for name, path in PEOPLE.items():
    STEPS[name] = lambda path=path: from_config(path, people=2)  # noqa: F821
for name, path in RESNETS.items():
    STEPS[name] = lambda path=path: from_config(path, **SMALL)  # noqa: F821
