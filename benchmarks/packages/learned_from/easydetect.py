"""Training steps over easydetect 0.7.10: batches of its trainers of boxes and of masks, of its criteria, on noise."""

import os
import sys
import tempfile
import types

absent("openvino onnxruntime onnx")

# two functions of torchvision are needed; neither waits
made = {name: types.ModuleType(name) for name in ("torchvision", "torchvision.ops", "torchvision.ops.boxes")}
made["torchvision"].__spec__ = None
made["torchvision"].ops, made["torchvision.ops"].boxes = made["torchvision.ops"], made["torchvision.ops.boxes"]
made["torchvision.ops.boxes"].box_area = lambda boxes: (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
sys.modules.update(made)

import cv2
import yaml
from easydetect.distill import Distiller
from easydetect.nn.ednet import EDNet
from easydetect.nn.sam_decoder import SamDecoder
from easydetect.pose_trainer import COCO, train_keypoints
from easydetect.seg_trainer import _losses
from easydetect.trainer import ModelEMA, Trainer
from easydetect.utils.loss import DetectionLoss

KINDS, SIZE, ROWS, MANY = 3, 96, 2, 14


def pictures(most=4, empty=0):
    """Pictures of noise, and boxes in them, as files."""
    home = tempfile.mkdtemp()
    for name in ("images", "labels"):
        os.makedirs(f"{home}/{name}")
    for at in range(MANY):
        cv2.imwrite(f"{home}/images/{at}.png", np.random.randint(0, 255, (64, 64, 3), dtype=np.uint8))
        boxes = [] if at < empty else [
            (np.random.randint(KINDS), *np.random.uniform(0.3, 0.7, 2), *np.random.uniform(0.1, 0.4, 2))
            for _ in range(np.random.randint(1, most + 1))
        ]  # fmt: skip
        with open(f"{home}/labels/{at}.txt", "w") as file:
            file.write("\n".join(" ".join(map(str, each)) for each in boxes))
    with open(f"{home}/data.yaml", "w") as file:
        yaml.safe_dump({"path": home, "train": "images", "val": "images", "names": ["a", "b", "c"]}, file)
    return home


def small(size="n"):
    torch.manual_seed(0)
    return EDNet(size, KINDS, pretrained_backbone=False).trim(queries=20)


def trained(size="n", data=pictures, **more):
    """A step is a batch of the trainer of boxes."""

    def make():
        home = data()
        given = {"epochs": 2, "imgsz": SIZE, "batch": ROWS, "workers": 0, "device": D, "project": home, **more}
        net = small(size)
        if "teacher" in given:
            given["extra_loss"] = Distiller(small(), net, **given.pop("teacher"))
        held = Trainer(net, f"{home}/data.yaml", **given)
        return loop(held.train)

    return make


STEPS["boxes"] = trained()
STEPS["boxes_in_single_precision"] = trained(amp=False)
STEPS["boxes_of_a_frozen_backbone"] = trained(freeze="backbone")
STEPS["boxes_of_a_frozen_body"] = trained(freeze="backbone+encoder")
STEPS["boxes_of_many_sizes"] = trained(multiscale=True)
STEPS["boxes_of_mosaics"] = trained(mosaic=1.0)
STEPS["boxes_mixed_up"] = trained(mixup=1.0)
STEPS["boxes_plain"] = trained(augment=False)
STEPS["boxes_told"] = trained(on_progress=lambda told: None)
STEPS["boxes_of_a_rate"] = trained(lr=1e-3, weight_decay=0.0, lr_backbone_mult=0.1, warmup_epochs=0)
STEPS["boxes_crowded"] = trained(data=lambda: pictures(12))
STEPS["boxes_of_some_without"] = trained(data=lambda: pictures(empty=4))
STEPS["boxes_beside_another_loss"] = trained(
    extra_loss=lambda seen, out: (
        out["pred_logits"].pow(2).mean() * 0.01,
        {"kd_logits": out["pred_logits"].mean().detach()},
    )
)
STEPS["boxes_taught"] = trained(teacher={})
STEPS["boxes_taught_where"] = trained(teacher={"dec_weight": 0.0})
STEPS["boxes_taught_what"] = trained(teacher={"enc_weight": 0.0})
STEPS["boxes_small"] = trained("s")
STEPS["boxes_keeping_norms"] = trained(clean_bn="keep")


def by_hand(ema=False, told=False, moved=True, **more):
    """A step of a loop that is written out: the net, its criterion, the optimizer."""

    def make():
        net = small().to(D).train()
        criterion, held = DetectionLoss(KINDS, reg_max=net.decoder.reg_max), ModelEMA(net) if ema else None
        optimizer = torch.optim.AdamW(net.parameters(), 1e-4)

        def go():
            seen = torch.rand(ROWS, 3, SIZE, SIZE).to(D)
            targets = [
                {"labels": torch.randint(0, KINDS, (3,)), "boxes": torch.rand(3, 4) * 0.3 + 0.2} for _ in range(ROWS)
            ]
            targets = [{name: value.to(D) for name, value in each.items()} for each in targets]
            loss, logs = criterion(net(seen, targets), targets)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            optimizer.step()
            if held:
                held.update(net)
            return {name: float(value) for name, value in logs.items()} if told else None

        return go

    return make


STEPS["hand"] = by_hand()
STEPS["hand_averaged"] = by_hand(ema=True)
STEPS["hand_told"] = by_hand(told=True)


@step
def masks():
    """A step of the trainer of masks: what it does with a batch of encoded pictures, boxes and masks."""
    net = SamDecoder().to(D)
    for each in net.prompt_encoder.parameters():
        each.requires_grad_(False)
    optimizer = torch.optim.AdamW(net.mask_decoder.parameters(), 1e-4)

    def go():
        seen = torch.from_numpy(np.random.randn(1, 256, 64, 64).astype("float32")).to(D)
        box = torch.from_numpy(np.array([[100, 100, 600, 500]], dtype=np.float32)).to(D)
        mask = torch.from_numpy((np.random.rand(1, 256, 256) > 0.5).astype("float32")).to(D)
        loss = _losses(*net(seen, box), mask)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(net.mask_decoder.parameters()), 1.0)
        optimizer.step()

    return go


class People(torch.utils.data.Dataset):
    """People of noise, and where their joints are."""

    spec = COCO

    def __len__(self):
        return MANY

    def __getitem__(self, at):
        places = torch.rand(len(COCO), 2) * torch.tensor([192.0, 256.0])
        return torch.rand(3, 256, 192) * 255, places, (torch.rand(len(COCO)) > 0.2).float(), at


def joints(**more):
    """A step is a batch of the trainer of joints."""

    def make():
        given = {"init": "none", "epochs": 2, "batch": ROWS, "workers": 0, "device": D, "log": lambda *_: None, **more}
        return loop(lambda: train_keypoints(People(), People(), tempfile.mkdtemp(), **given))

    return make


STEPS["joints"] = joints()
STEPS["joints_in_single_precision"] = joints(amp=False)
STEPS["joints_of_a_frozen_backbone"] = joints(freeze=2)
STEPS["joints_told"] = joints(on_progress=lambda told: None)
