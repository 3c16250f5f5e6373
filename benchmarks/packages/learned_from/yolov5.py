"""Training steps over yolov5 7.0.14: detectors, segmenters and classifiers of every kind it has, stepped as its `train.py` does."""

import math
import sys
from pathlib import Path
from unittest import mock

for absent in (
    "roboflow",
    "sahi",
    "boto3",
    "ultralytics",
    "ultralytics.utils",
    "ultralytics.utils.checks",
    "thop",
    "fire",
    "seaborn",
):
    sys.modules.setdefault(absent, mock.MagicMock())

import yaml
import yolov5
from yolov5.models.yolo import ClassificationModel, DetectionModel, SegmentationModel
from yolov5.utils.autoanchor import check_anchor_order
from yolov5.utils.general import labels_to_class_weights, labels_to_image_weights, one_cycle
from yolov5.utils.loss import BCEBlurWithLogitsLoss, ComputeLoss, QFocalLoss
from yolov5.utils.segment.loss import ComputeLoss as ComputeMaskLoss
from yolov5.utils.torch_utils import ModelEMA, smart_optimizer

HERE = Path(yolov5.__file__).parent
SIDE, CLASSES, BATCH = 64, 4, 2


def hyperparameters(name="scratch-low", **more):
    return {**yaml.safe_load((HERE / f"data/hyps/hyp.{name}.yaml").read_text(errors="ignore")), **more}


def configured(name, **more):
    """One of its configurations, made as narrow as it goes."""
    cfg = yaml.safe_load((HERE / "models" / f"{name}.yaml").read_text(errors="ignore"))
    return {**cfg, "depth_multiple": 0.1, "width_multiple": 0.1, **more}


def targets(empty=False):
    """Boxes as its loader collates them: the image, the class, the middle and the size of each."""
    boxes = torch.rand(0 if empty else 12, 6) * 0.4 + 0.3
    boxes[:, 0], boxes[:, 1] = (torch.arange(len(boxes)) % BATCH).float(), torch.randint(CLASSES, (len(boxes),)).float()
    return boxes[boxes[:, 0].argsort()]


def pictures(side=SIDE):
    return torch.randint(0, 255, (BATCH, 3, side, side), dtype=torch.uint8)


def stepped(net, loss_of, hyp, optimizer="SGD", cos=False, amp=True, multi_scale=False):
    """What `train.py` does with a batch: warm up, scale the gradients, clip them, step, and average the weights and losses."""
    nominal, epochs, warm = 2, 10, 100
    made = smart_optimizer(net, optimizer, hyp["lr0"], hyp["momentum"], hyp["weight_decay"])
    lf = one_cycle(1, hyp["lrf"], epochs) if cos else lambda x: (1 - x / epochs) * (1.0 - hyp["lrf"]) + hyp["lrf"]
    scheduler = torch.optim.lr_scheduler.LambdaLR(made, lr_lambda=lf)
    scaler = torch.amp.GradScaler("cpu", enabled=amp)
    ema, held = ModelEMA(net), {"ni": 0, "mean": 0}

    def go():
        net.train()
        for _ in range(2):
            imgs = pictures().to(D, non_blocking=True).float() / 255
            i = held["ni"]
            for j, x in enumerate(made.param_groups):
                x["lr"] = np.interp(i, [0, warm], [hyp["warmup_bias_lr"] if j == 0 else 0.0, x["initial_lr"] * lf(0)])
                if "momentum" in x:
                    x["momentum"] = np.interp(i, [0, warm], [hyp["warmup_momentum"], hyp["momentum"]])
            if multi_scale:
                size = [math.ceil(x * 1.5 / 32) * 32 for x in imgs.shape[2:]]
                imgs = torch.nn.functional.interpolate(imgs, size=size, mode="bilinear", align_corners=False)
            with torch.autocast("cuda", enabled=amp):
                loss, items = loss_of(net, imgs)
            scaler.scale(loss).backward()
            if i % nominal == 0:
                scaler.unscale_(made)
                torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=10.0)
                scaler.step(made)
                scaler.update()
                made.zero_grad()
                ema.update(net)
            held["mean"] = (held["mean"] * i + items) / (i + 1)
            held["ni"] += 1
        scheduler.step()
        ema.update_attr(net, include=["yaml", "nc", "hyp", "names", "stride", "class_weights"])

    return go


def prepared(net, hyp):
    """A model with the attributes that `train.py` gives it."""
    net = net.to(D)
    layers = net.model[-1].nl
    hyp["box"] *= 3 / layers
    hyp["cls"] *= CLASSES / 80 * 3 / layers
    hyp["obj"] *= (SIDE / 640) ** 2 * 3 / layers
    labels = [targets()[:, 1:].numpy() for _ in range(4)]
    net.nc, net.hyp, net.names = CLASSES, hyp, [str(i) for i in range(CLASSES)]
    net.class_weights = labels_to_class_weights(labels, CLASSES).to(D) * CLASSES
    check_anchor_order(net.model[-1])
    return net, labels


def detector(
    config="yolov5n",
    hyp="scratch-low",
    criterion=None,
    empty=False,
    images=False,
    autobalance=False,
    more=(),
    classes=CLASSES,
    change=None,
    **how,
):
    def make():
        values = hyperparameters(hyp, label_smoothing=0.0, **dict(more))
        net, labels = prepared(DetectionModel(configured(config), ch=3, nc=classes), values)
        loss = ComputeLoss(net, autobalance=autobalance)
        if criterion:
            loss.BCEcls, loss.BCEobj = criterion(loss.BCEcls), criterion(loss.BCEobj)
        for name, value in (change or {}).items():
            setattr(loss, name, value)

        def loss_of(model, imgs):
            boxes = targets(empty)
            boxes[:, 1].clamp_(max=classes - 1)
            return loss(model(imgs), boxes.to(D))

        go = stepped(net, loss_of, values, **how)

        def weighted():
            weights = net.class_weights.cpu().numpy() * (1 - np.zeros(CLASSES)) ** 2 / CLASSES
            labels_to_image_weights(labels, nc=CLASSES, class_weights=weights)
            go()

        return weighted if images else go

    return make


STEPS["detector"] = detector()
for each in ("yolov3-tiny", "yolov5-bifpn", "yolov5-fpn", "yolov5-p2", "yolov5-p34", "yolov5-p6", "yolov5-panet"):
    STEPS[f"detector_{each}"] = detector(f"hub/{each}")
for each in ("yolov5s-ghost", "yolov5s-transformer", "yolov5s-LeakyReLU", "yolov3-spp"):
    STEPS[f"detector_{each}"] = detector(f"hub/{each}")
for each in ("no-augmentation", "scratch-high", "VOC", "Objects365"):
    STEPS[f"detector_of_{each}"] = detector(hyp=each)
STEPS["focal_loss"] = detector(more={"fl_gamma": 1.5})
STEPS["quality_focal_loss"] = detector(criterion=QFocalLoss)
STEPS["blurred_loss"] = detector(criterion=lambda _: BCEBlurWithLogitsLoss())
STEPS["balanced_by_itself"] = detector(autobalance=True)
STEPS["sorted_by_overlap"] = detector(change={"sort_obj_iou": True, "gr": 0.5})
STEPS["one_class"] = detector(classes=1)
STEPS["pictures_without_boxes"] = detector(empty=True)
STEPS["weights_of_images"] = detector(images=True)
STEPS["adam"] = detector(optimizer="Adam", cos=True)
STEPS["adamw_of_many_scales"] = detector(optimizer="AdamW", multi_scale=True)
STEPS["rmsprop_without_amp"] = detector(optimizer="RMSProp", amp=False)


def segmenter(overlap=False, more=(), config="segment/yolov5n-seg", autobalance=False):
    def make():
        values = hyperparameters(label_smoothing=0.0, **dict(more))
        net, _ = prepared(SegmentationModel(configured(config), ch=3, nc=CLASSES), values)
        loss = ComputeMaskLoss(net, overlap=overlap, autobalance=autobalance)

        def loss_of(model, imgs):
            boxes = targets()
            masks = torch.randint(0, 3, (BATCH if overlap else len(boxes), SIDE // 4, SIDE // 4)).clamp(
                max=6 if overlap else 1
            )
            return loss(model(imgs), boxes.to(D), masks=masks.to(D).float())

        return stepped(net, loss_of, values)

    return make


STEPS["segmenter"] = segmenter()
STEPS["segmenter_of_masks_that_overlap"] = segmenter(True)
STEPS["segmenter_with_focal_loss"] = segmenter(more={"fl_gamma": 1.5})
STEPS["segmenter_balanced_by_itself"] = segmenter(autobalance=True)


@step
def classifier():
    from yolov5.utils.loss import FocalLoss  # noqa: F401
    from yolov5.utils.torch_utils import smartCrossEntropyLoss

    net = ClassificationModel(model=DetectionModel(configured("yolov5n"), ch=3, nc=CLASSES), nc=CLASSES, cutoff=10).to(
        D
    )
    criterion = smartCrossEntropyLoss(label_smoothing=0.1)
    optimizer = smart_optimizer(net, "Adam", 1e-3, momentum=0.9, decay=5e-5)
    scaler, ema = torch.amp.GradScaler("cpu"), ModelEMA(net)
    for m in net.modules():
        if isinstance(m, torch.nn.Dropout):
            m.p = 0.1

    def go():
        net.train()
        images, labels = (pictures().float() / 255).to(D, non_blocking=True), torch.randint(CLASSES, (BATCH,)).to(D)
        with torch.autocast("cuda"):
            loss = criterion(net(images), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=10.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        ema.update(net)

    return go
