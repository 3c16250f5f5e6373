"""Training steps over brevitas 0.13.4: networks whose weights and activations are quantized while they learn, and its examples
that do so.
"""

import argparse
import sys
import tempfile
import types

SEEN, CLASSES, ROWS = 8, 4, 4


class Noise(torch.utils.data.Dataset):
    """Pictures, of the size of those that an example fetches."""

    shape = (3, 32, 32)

    def __init__(self, *_, **__):
        pass

    def __len__(self):
        return 64

    def __getitem__(self, at):
        return torch.rand(self.shape), at % 10


def vision():
    """What the examples ask of torchvision."""
    made = {name: types.ModuleType(name) for name in ("torchvision", "torchvision.transforms", "torchvision.datasets")}
    made["torchvision"].__version__, made["torchvision"].__spec__ = "0.28.0", None
    made["torchvision"].transforms, made["torchvision"].datasets = (
        made["torchvision.transforms"],
        made["torchvision.datasets"],
    )
    for name in ("Compose", "ToTensor", "RandomCrop", "RandomHorizontalFlip"):
        setattr(made["torchvision.transforms"], name, lambda *_, **__: None)
    made["torchvision.datasets"].CIFAR10 = Noise
    made["torchvision.datasets"].MNIST = type("MNIST", (Noise,), {"shape": (1, 28, 28)})
    return made


absent("onnx onnxruntime qonnx onnxoptimizer onnxscript")

import brevitas.nn as qnn
from brevitas import quant
from brevitas.loss import ActivationBitWidthWeightedBySize, WeightBitWidthWeightedBySize
from torch import nn

sys.modules.update(vision())
from brevitas_examples.bnn_pynq import trainer as example


def learned(net, x=None, y=None, loss=nn.functional.cross_entropy, more=None, optimizer=torch.optim.Adam):
    """A step: a batch is moved, the loss, backward, the optimizer."""

    def make():
        made = net().to(D).train()
        held = optimizer([each for each in made.parameters() if each.requires_grad], 1e-3)
        costs = more(made) if more else None

        def go():
            fed = (x() if x else torch.randn(ROWS, SEEN)).to(D)
            target = (y() if y else torch.randint(0, CLASSES, (ROWS,))).to(D)
            held.zero_grad()
            shown = made(fed)
            shown = shown[0] if type(shown) is tuple else shown
            value = loss(getattr(shown, "value", shown), target)
            if costs is not None:
                value = value + 0.01 * costs.retrieve(as_average=True)
            value.backward()
            held.step()
            if costs is not None:
                costs.zero_accumulated_values()

        return go

    return make


def mlp(
    weight=quant.Int8WeightPerTensorFloat, act=quant.Uint8ActPerTensorFloat, told=False, bits=None, bias=None, inp=None
):
    """Two layers, with an activation between."""
    given = {} if bits is None else {"weight_bit_width": bits}
    held = {} if bits is None or act is None else {"bit_width": bits}

    def make():
        first = [qnn.QuantIdentity(act_quant=inp, return_quant_tensor=told)] if inp else []
        return nn.Sequential(
            *first,
            qnn.QuantLinear(SEEN, 16, True, weight_quant=weight, bias_quant=bias, **given),
            qnn.QuantReLU(act_quant=act, return_quant_tensor=told, **held),
            qnn.QuantLinear(16, CLASSES, True, weight_quant=weight, bias_quant=bias, **given),
        )

    return make


STEPS["linear"] = learned(mlp())
STEPS["linear_told"] = learned(mlp(told=True, inp=quant.Int8ActPerTensorFloat))
STEPS["linear_biased"] = learned(
    mlp(told=True, inp=quant.Int8ActPerTensorFloat, bias=quant.Int8BiasPerTensorFloatInternalScaling)
)
STEPS["linear_of_four_bits"] = learned(mlp(bits=4))
STEPS["linear_of_four_bits_told"] = learned(mlp(bits=4, told=True, inp=quant.Int8ActPerTensorFloat))
STEPS["linear_of_weights"] = learned(mlp(act=None))
STEPS["linear_sgd"] = learned(mlp(), optimizer=torch.optim.SGD)
for name, (weight, act) in {
    "per_channel": ("Int8WeightPerChannelFloat", "Uint8ActPerTensorFloat"),
    "fixed_point": ("Int8WeightPerTensorFixedPoint", "Uint8ActPerTensorFixedPoint"),
    "fixed_point_per_channel": ("Int8WeightPerChannelFixedPoint", "Int8ActPerTensorFixedPoint"),
    "shifted": ("ShiftedUint8WeightPerTensorFloat", "ShiftedUint8ActPerTensorFloat"),
    "shifted_per_channel": ("ShiftedUint8WeightPerChannelFloat", "ShiftedUint8ActPerTensorFloat"),
    "by_least_squares": ("Int8WeightPerTensorFloatMSE", "Uint8ActPerTensorFloatMSE"),
    "decoupled": ("Int8WeightPerChannelFloatDecoupled", "Uint8ActPerTensorFloat"),
    "of_norms": ("Int8WeightNormL2PerChannelFixedPoint", "Uint8ActPerTensorFixedPoint"),
    "of_decoupled_points": ("Int4WeightPerTensorFixedPointDecoupled", "Uint8ActPerTensorFixedPoint"),
    "of_extremes": ("Int8WeightPerTensorFixedPoint", "Uint8ActPerTensorFixedPointMaxInit"),
    "ternary": ("SignedTernaryWeightPerTensorConst", "SignedTernaryActPerTensorConst"),
    "binary": ("SignedBinaryWeightPerTensorConst", "SignedBinaryActPerTensorConst"),
}.items():
    if hasattr(quant, weight) and hasattr(quant, act):
        more = {"max_val": 6.0} if act.endswith("MaxInit") else {}
        kind = getattr(quant, act).let(**more) if more else getattr(quant, act)
        STEPS[f"quantized_{name}"] = learned(mlp(getattr(quant, weight), kind))
        STEPS[f"quantized_{name}_told"] = learned(
            mlp(getattr(quant, weight), kind, True, inp=quant.Int8ActPerTensorFloat)
        )


def floats():
    from brevitas.quant.experimental import float_quant_ocp as held

    return mlp(
        held.Fp8e4m3OCPWeightPerTensorFloat,
        held.Fp8e4m3OCPActPerTensorFloat,
        True,
        inp=held.Fp8e4m3OCPActPerTensorFloat,
    )()


def groups():
    from brevitas.quant.experimental import mx_quant_ocp as held

    kept = {"weight_quant": held.MXInt8Weight, "input_quant": held.MXInt8Act}
    return nn.Sequential(qnn.QuantLinear(32, 32, True, **kept), nn.ReLU(), qnn.QuantLinear(32, CLASSES, True, **kept))


STEPS["floats"] = learned(floats)
STEPS["groups"] = learned(groups, lambda: torch.randn(ROWS, 32))


def pictures(size=8, channels=3):
    return lambda: torch.randn(ROWS, channels, size, size)


def cnn(told=True, weight=quant.Int8WeightPerTensorFloat, bits=4, pool=None, normed=True):
    """Of the tutorials: convolutions, pools, a layer."""

    def make():
        given = {"weight_quant": weight, "weight_bit_width": bits}
        act = {"bit_width": bits, "return_quant_tensor": told}
        norm = [nn.BatchNorm2d(8)] if normed else []
        return nn.Sequential(
            qnn.QuantIdentity(return_quant_tensor=told), qnn.QuantConv2d(3, 8, 3, padding=1, **given), *norm,
            qnn.QuantReLU(**act), pool() if pool else nn.MaxPool2d(2), qnn.QuantConv2d(8, 8, 3, padding=1, **given),
            qnn.QuantReLU(**{**act, "return_quant_tensor": False}), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            qnn.QuantLinear(8, CLASSES, True, **given),
        )  # fmt: skip

    return make


STEPS["cnn"] = learned(cnn(), pictures())
STEPS["cnn_of_tensors"] = learned(cnn(False), pictures())
STEPS["cnn_per_channel"] = learned(cnn(weight=quant.Int8WeightPerChannelFloat), pictures())
STEPS["cnn_cut_pools"] = learned(cnn(pool=lambda: qnn.TruncAvgPool2d(2, bit_width=4)), pictures())
STEPS["cnn_without_norms"] = learned(cnn(normed=False), pictures())
STEPS["depthwise"] = learned(
    lambda: nn.Sequential(
        qnn.QuantConv2d(3, 6, 3, groups=3, weight_bit_width=8), qnn.QuantReLU(), qnn.QuantConv2d(6, CLASSES, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    ), pictures(),
)  # fmt: skip
STEPS["upwards"] = learned(
    lambda: nn.Sequential(
        qnn.QuantConvTranspose2d(3, 4, 2, stride=2), qnn.QuantReLU(return_quant_tensor=True),
        qnn.QuantUpsample(scale_factor=2), qnn.QuantConv2d(4, CLASSES, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    ), pictures(),
)  # fmt: skip


class Residual(nn.Module):
    """What goes round is added to what goes through."""

    def __init__(self):
        super().__init__()
        self.seen = qnn.QuantIdentity(return_quant_tensor=True)
        self.conv = qnn.QuantConv2d(3, 3, 3, padding=1)
        self.add = qnn.QuantEltwiseAdd(return_quant_tensor=True)
        self.norm, self.end = qnn.BatchNorm2dToQuantScaleBias(3), qnn.QuantLinear(3, CLASSES, True)

    def forward(self, x):
        x = self.seen(x)
        held = self.norm(self.add(self.conv(x), x))
        return self.end(getattr(held, "value", held).mean((2, 3)))


STEPS["residual"] = learned(Residual, pictures())
for name in ("QuantSigmoid", "QuantTanh", "QuantHardTanh"):
    more = {"min_val": -1.0, "max_val": 1.0} if name == "QuantHardTanh" else {}
    STEPS[f"activation_{name}"] = learned(
        lambda name=name, more=more: nn.Sequential(
            qnn.QuantLinear(SEEN, 16, True),
            getattr(qnn, name)(return_quant_tensor=True, **more),
            qnn.QuantLinear(16, CLASSES, True),
        )
    )


class Read(nn.Module):
    """Series, or words, are read."""

    def __init__(self, kind, words=False, **more):
        super().__init__()
        self.words = qnn.QuantEmbedding(20, SEEN, weight_bit_width=8) if words else nn.Identity()
        self.net, self.end = (
            kind(SEEN, 8, **more),
            qnn.QuantLinear(8 * (2 if more.get("bidirectional") else 1), CLASSES, True),
        )

    def forward(self, x):
        held = self.net(self.words(x))[0]
        return self.end(getattr(held, "value", held)[:, -1])


def series():
    return torch.randn(ROWS, 5, SEEN)


def words():
    return torch.randint(0, 20, (ROWS, 5))


for name in ("QuantLSTM", "QuantRNN"):
    kind = getattr(qnn, name)
    STEPS[f"series_{name}"] = learned(lambda kind=kind: Read(kind, batch_first=True), series)
    STEPS[f"series_{name}_of_words"] = learned(lambda kind=kind: Read(kind, True, batch_first=True), words)
STEPS["series_both_ways"] = learned(lambda: Read(qnn.QuantLSTM, batch_first=True, bidirectional=True), series)


class Attending(nn.Module):
    """Quantized attention."""

    def __init__(self):
        super().__init__()
        self.net, self.end = (
            qnn.QuantMultiheadAttention(SEEN, 2, batch_first=True),
            qnn.QuantLinear(SEEN, CLASSES, True),
        )

    def forward(self, x):
        return self.end(self.net(x, x, x)[0].mean(1))


STEPS["attention"] = learned(Attending, series)


class Bits(quant.Int8WeightPerTensorFloat):
    """How many bits is learned."""

    bit_width_impl_type = "parameter"


class ActBits(quant.Uint8ActPerTensorFloat):
    """As `Bits`, of activations."""

    bit_width_impl_type = "parameter"


STEPS["bits_learned"] = learned(mlp(Bits, ActBits))
STEPS["bits_learned_and_weighed"] = learned(mlp(Bits, ActBits), more=WeightBitWidthWeightedBySize)
STEPS["bits_of_activations_weighed"] = learned(mlp(Bits, ActBits, told=True), more=ActivationBitWidthWeightedBySize)


def of_example(network, loss="SqrHinge", optim="ADAM", **more):
    """A step of the example's own trainer."""

    def make():
        home = tempfile.mkdtemp()
        asked = argparse.Namespace(
            **{
                "network": network, "loss": loss, "optim": optim, "datadir": home, "experiments": home, "dry_run": True,
                "log_freq": 1, "evaluate": False, "resume": None, "detect_nan": False, "num_workers": 0, "gpus": "0",
                "batch_size": 8, "num_samples": 8, "lr": 0.02, "scheduler": "FIXED", "milestones": "9", "momentum": 0.9,
                "weight_decay": 0, "epochs": 2, "random_seed": 1, "pretrained": False, "strict": False,
                "state_dict_to_pth": False, "export_qonnx": False, "export_qcdq_onnx": False, **more,
            }
        )  # fmt: skip
        return loop(example.Trainer(asked).train_model)

    return make


for network in ("TFC_1W1A", "TFC_2W2A", "SFC_1W2A", "CNV_1W1A", "CNV_2W2A"):
    STEPS[f"example_{network}"] = of_example(network)
STEPS["example_TFC_logged_at_times"] = of_example("TFC_1W2A", log_freq=100)
STEPS["example_of_entropy"] = of_example("TFC_1W2A", "CrossEntropy", "SGD", scheduler="STEP")
