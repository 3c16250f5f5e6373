"""Training steps over pytorchyolo 1.8.0: batches of its program that trains, on small networks of darknet's, and of a loop by hand."""

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from unittest import mock

absent("torchsummary")

np.sctypes = {  # what imgaug 0.4 asks of numpy 1
    "float": [np.float16, np.float32, np.float64],
    "int": [np.int8, np.int16, np.int32, np.int64],
    "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
    "complex": [np.complex64, np.complex128],
    "others": [bool, object, bytes, str],
}

from PIL import Image
from pytorchyolo import train as program
from pytorchyolo.models import load_model
from pytorchyolo.utils import datasets, loss, transforms

IMAGES, SIZE, CLASSES = 32, 64, 3
NET = """[net]
batch={batch}
subdivisions={subdivisions}
width=64
height=64
channels=3
momentum=0.9
decay=0.0005
learning_rate=0.001
burn_in={burn_in}
max_batches=500
policy=steps
steps=2,400
scales=.5,.1
{optimizer}
"""


def conv(filters, size=3, stride=1, activation="leaky", normalized=True):
    return (
        "[convolutional]\n"
        + ("batch_normalize=1\n" if normalized else "")
        + f"filters={filters}\nsize={size}\nstride={stride}\npad=1\nactivation={activation}\n"
    )


def yolo(mask, classes, more=""):
    """A layer of boxes, and the convolution that leads to it."""
    head = conv(3 * (classes + 5), 1, 1, "linear", False)
    anchors = "4,6, 8,8, 10,14, 14,20, 24,20, 32,32"
    return f"{head}[yolo]\nmask={mask}\nanchors={anchors}\nclasses={classes}\nnum=6\n{more}"


def tiny(classes, act="leaky"):
    """As yolov3-tiny: two layers of boxes, the second on what is scaled up and joined."""
    down = "[maxpool]\nsize=2\nstride=2\n"
    trunk = conv(4, activation=act) + down + conv(6, activation=act) + down + conv(8, activation=act) + down
    last = conv(8, activation=act) + down + "[maxpool]\nsize=2\nstride=1\n" + conv(8, 1, 1, act)
    up = "[route]\nlayers=-3\n\n" + conv(4, 1, 1, act) + "[upsample]\nstride=2\n\n[route]\nlayers=-1,6\n\n"
    return trunk + last + yolo("3,4,5", classes) + up + conv(8, activation=act) + yolo("0,1,2", classes)


def residual(classes, act="leaky", more=""):
    """As yolov3: a shortcut around two convolutions; as yolov4, half of the channels go a way of their own."""
    trunk = conv(8, 3, 2, act) + conv(8, 3, 2, act) + conv(4, 1, 1, act) + conv(8, 3, 1, act) + "[shortcut]\nfrom=-3\n"
    half = "[route]\nlayers=-1\ngroups=2\ngroup_id=1\n\n" + conv(8, 3, 2, act)
    return (
        trunk
        + half
        + yolo("0,1,2", classes, more)
        + "[route]\nlayers=-3\n\n"
        + conv(8, 3, 2, act)
        + yolo("3,4,5", classes)
    )


def laid(layers, batch=4, subdivisions=1, burn_in=3, optimizer="", boxes=3, classes=CLASSES):
    """A folder with the network, images and what is on them, as the readme asks for."""
    home = Path(tempfile.mkdtemp())
    for folder in ("images", "labels"):
        (home / folder).mkdir()
    for i in range(IMAGES):
        pixels = np.random.randint(0, 255, (SIZE, SIZE, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(home / "images" / f"{i}.png")
        held = [
            f"{np.random.randint(classes)} "
            + " ".join(f"{each:.4f}" for each in (*np.random.uniform(0.3, 0.7, 2), 0.2, 0.3))
            for _ in range(boxes)
        ]
        (home / "labels" / f"{i}.txt").write_text("\n".join(held))
    (home / "all.txt").write_text("\n".join(str(home / "images" / f"{i}.png") for i in range(IMAGES)))
    (home / "names").write_text("\n".join("abcdef"[:classes]) + "\n")
    (home / "data").write_text(f"train={home}/all.txt\nvalid={home}/all.txt\nnames={home}/names\n")
    given = {"batch": batch, "subdivisions": subdivisions, "burn_in": burn_in, "optimizer": optimizer}
    (home / "cfg").write_text(NET.format(**given) + layers)
    return home


def trained(layers, *options, classes=CLASSES, augmented=None, **more):
    """A step is a batch of the program, `yolo-train`."""

    def make():
        home = laid(layers(classes), classes=classes, **more)

        def fit():
            os.chdir(home)
            named = ["-m", f"{home}/cfg", "-d", f"{home}/data", "-e", "2", "--n_cpu", "0", "--logdir", f"{home}/logs"]
            with contextlib.ExitStack() as stack:
                stack.enter_context(mock.patch.object(sys, "argv", ["yolo-train", *named, *options]))
                if augmented is not None:
                    stack.enter_context(mock.patch.object(program, "AUGMENTATION_TRANSFORMS", augmented()))
                program.run()

        return loop(fit)

    return make


STEPS["tiny"] = trained(tiny)
STEPS["tiny_told"] = trained(tiny, "--verbose")
STEPS["tiny_multiscale"] = trained(tiny, "--multiscale_training")
STEPS["tiny_sgd"] = trained(tiny, optimizer="optimizer=sgd")
STEPS["tiny_adam"] = trained(tiny, optimizer="optimizer=adam", burn_in=0)
STEPS["tiny_seeded"] = trained(tiny, "--seed", "3")
STEPS["tiny_of_one_class"] = trained(tiny, classes=1)
STEPS["tiny_accumulated"] = trained(tiny, batch=4, subdivisions=2)
STEPS["tiny_mish"] = trained(lambda classes: tiny(classes, "mish"))
STEPS["tiny_swish"] = trained(lambda classes: tiny(classes, "swish"))
STEPS["tiny_of_many_boxes"] = trained(tiny, boxes=12)
STEPS["residual"] = trained(residual)
STEPS["residual_sgd_told"] = trained(residual, "--verbose", optimizer="optimizer=sgd")
STEPS["residual_new_coords"] = trained(lambda classes: residual(classes, "logistic", "new_coords=1\n"))
STEPS["residual_not_augmented"] = trained(residual, augmented=lambda: transforms.DEFAULT_TRANSFORMS)


def by_hand(clip=0.0, logged=False):
    """The package's network, images and loss in a loop of one's own, that reads no part of the loss unless it is told."""

    def make():
        home = laid(tiny(CLASSES))
        net = load_model(str(home / "cfg")).train()
        images = datasets.ListDataset(str(home / "all.txt"), SIZE, False, transforms.DEFAULT_TRANSFORMS)
        batches = torch.utils.data.DataLoader(images, 4, shuffle=True, collate_fn=images.collate_fn, pin_memory=True)
        optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, nesterov=True)

        def fit():
            for _, pictures, targets in batches:
                pictures, targets = pictures.to(D, non_blocking=True), targets.to(D, non_blocking=True)
                value, parts = loss.compute_loss(net(pictures), targets, net)
                optimizer.zero_grad()
                value.backward()
                if clip:
                    torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
                optimizer.step()
                if logged:
                    print(f"box {parts[0].item():.3f}")

        return loop(fit)

    return make


STEPS["by_hand"] = by_hand()
STEPS["by_hand_clipped_and_told"] = by_hand(5.0, True)
