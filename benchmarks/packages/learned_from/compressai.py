"""Training steps over compressai 1.2.8: learned codecs of pictures, of videos and of clouds of points, by its examples' loops."""

import argparse
import contextlib
import io
import sys
import types

absent("fpsample")


def nearest(k, points, asked):
    """Of each point that is asked for, the `k` that lie next to it."""
    return torch.cdist(asked, points).topk(k, largest=False)[1].int()


def ball(radius, k, points, centers):
    """As many points that lie within a ball, the first of them again where there are fewer."""
    distance = torch.cdist(centers, points)
    near = distance.topk(k, largest=False)
    return torch.where(near[0] < radius, near[1], near[1][..., :1]).int()


def furthest(points, count):
    """Of points, by whichever dimension is theirs: points far from each other: the furthest from those that there are, one by one."""
    points = points if points.shape[-1] == 3 else points.transpose(1, 2)
    at = torch.zeros(points.shape[0], dtype=torch.long, device=points.device)
    left, held = torch.full(points.shape[:2], 1e10, device=points.device), []
    for _ in range(count):
        held.append(at)
        from_it = (points - points.gather(1, at.view(-1, 1, 1).expand(-1, 1, 3))).pow(2).sum(-1)
        left = torch.minimum(left, from_it)
        at = left.max(-1)[1]
    return torch.stack(held, 1).int()


pointops = types.ModuleType("pointops.functions.pointops")  # kernels of CUDA, in torch's words, which wait for nothing
pointops.knnquery_heap, pointops.ballquery, pointops.furthestsampling = nearest, ball, furthest
functions = types.ModuleType("pointops.functions")
functions.pointops = pointops
sys.modules |= {"pointops": types.ModuleType("pointops"), "pointops.functions": functions}

import compressai.models as M
from compressai.entropy_models import EntropyBottleneck, GaussianConditional, GaussianMixtureConditional
from compressai.latent_codecs import (
    ChannelGroupsLatentCodec,
    CheckerboardLatentCodec,
    EntropyBottleneckLatentCodec,
    GaussianConditionalLatentCodec,
    HyperLatentCodec,
    HyperpriorLatentCodec,
    RasterScanLatentCodec,
)
from compressai.layers import (
    GDN,
    AttentionBlock,
    MaskedConv2d,
    ResidualBlock,
    ResidualBlockUpsample,
    ResidualBlockWithStride,
)
from compressai.losses import RateDistortionLoss
from compressai.losses.pointcloud import ChamferPccRateDistortionLoss, RateDistortionLoss_hrtzxf2022
from compressai.models.pointcloud import (
    DensityPreservingReconstructionPccModel,
    PointNet2SsgReconstructionPccModel,
    PointNetReconstructionPccModel,
)
from compressai.models.utils import conv, deconv
from compressai.models.video import ScaleSpaceFlow
from compressai.zoo import image_models
from examples import train as of_pictures
from examples import train_pointcloud as of_points
from examples import train_video as of_videos
from torch import nn

N, SIDE, ROWS, BATCHES = 8, 64, 2, 8
RATES = argparse.Namespace(learning_rate=1e-4, aux_learning_rate=1e-3)


def trained(net, data, criterion, program=of_pictures, clip=1.0):
    """A step is a batch of an example's epoch: the codec, then what its tables are made of, each with its optimizer."""

    def make():
        held = net().to(D)
        optimizer, aux = program.configure_optimizers(held, RATES)
        batches = torch.utils.data.DataLoader(data(), ROWS, shuffle=True, pin_memory=True)

        def fit():
            with contextlib.redirect_stdout(io.StringIO()):
                program.train_one_epoch(held, criterion(), batches, optimizer, aux, 0, clip)

        return loop(fit, optimizers=2)

    return make


def pictures(side=SIDE):
    return lambda: torch.rand(ROWS * BATCHES, 3, side, side)


def pictured(net, lmbda=0.01, metric="mse", side=SIDE, loss=None, **more):
    return trained(net, pictures(side), loss or (lambda: of_pictures.RateDistortionLoss(lmbda=lmbda)), **more)


STEPS["factorized"] = pictured(lambda: M.FactorizedPrior(N, 12))
STEPS["factorized_relu"] = pictured(lambda: M.FactorizedPriorReLU(N, 12), lmbda=0.05)
STEPS["hyperprior"] = pictured(lambda: M.ScaleHyperprior(N, 12))
STEPS["hyperprior_unclipped"] = pictured(lambda: M.ScaleHyperprior(N, 12), clip=0.0)
STEPS["mean_hyperprior"] = pictured(lambda: M.MeanScaleHyperprior(N, 12))
STEPS["autoregressive"] = pictured(lambda: M.JointAutoregressiveHierarchicalPriors(N, 12))
STEPS["cheng_anchor"] = pictured(lambda: M.Cheng2020Anchor(N))
STEPS["cheng_attention"] = pictured(lambda: M.Cheng2020Attention(N))
STEPS["cheng_checkerboard"] = pictured(lambda: M.Cheng2020AnchorCheckerboard(N))
STEPS["elic"] = pictured(lambda: M.Elic2022Official(N, 16, [4, 4, 8]))
STEPS["elic_chandelier"] = pictured(lambda: M.Elic2022Chandelier(N, 16, [4, 4, 8]))
STEPS["of_the_zoo"] = pictured(lambda: image_models["bmshj2018-factorized"](quality=1))
STEPS["hyperprior_of_package_loss"] = pictured(
    lambda: M.ScaleHyperprior(N, 12), loss=lambda: RateDistortionLoss(lmbda=0.02)
)


def by_hand(net, metric="mse", call=lambda net, x: net(x), lmbda=None, told=False, side=SIDE):
    """A loop of one's own; whoever tells of each batch reads what it lost."""

    def make():
        held = net().to(D).train()
        optimizer, aux = of_pictures.configure_optimizers(held, RATES)
        loss = RateDistortionLoss(lmbda=lmbda or 0.01, metric=metric)
        batches = torch.utils.data.DataLoader(pictures(side)(), ROWS, shuffle=True)

        def fit():
            for x in batches:
                x = x.to(D, non_blocking=True)
                out = loss(call(held, x), x)
                optimizer.zero_grad(), aux.zero_grad()
                out["loss"].backward()
                nn.utils.clip_grad_norm_(held.parameters(), 1.0)
                optimizer.step()
                tables = held.aux_loss()
                if torch.is_tensor(tables):  # of bottlenecks of several rates there are none
                    tables.backward()
                aux.step()
                if told:
                    print({name: value.item() for name, value in out.items()}, float(tables), file=io.StringIO())

        return loop(fit, optimizers=2)

    return make


STEPS["similar_by_scales"] = by_hand(lambda: M.FactorizedPrior(N, 12), "ms-ssim", side=192)
STEPS["told"] = by_hand(lambda: M.MeanScaleHyperprior(N, 12), told=True)
for stage in (1, 2):
    STEPS[f"rates_stage_{stage}"] = by_hand(
        lambda: M.ScaleHyperpriorVbr(N, 12), call=lambda net, x, stage=stage: net(x, stage=stage, s=3)
    )
STEPS["rates_of_means"] = by_hand(lambda: M.MeanScaleHyperpriorVbr(N, 12), call=lambda net, x: net(x, stage=2, s=2))
STEPS["rates_of_means_and_bottleneck"] = by_hand(
    lambda: M.MeanScaleHyperpriorVbr(N, 12, vr_entbttlnck=True), call=lambda net, x: net(x, stage=2, s=5)
)
STEPS["rates_autoregressive"] = by_hand(
    lambda: M.JointAutoregressiveHierarchicalPriorsVbr(N, 12), call=lambda net, x: net(x, stage=2, s=2)
)


class Network(M.CompressionModel):
    """Of the tutorial: an autoencoder around a bottleneck."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(conv(3, N), GDN(N), ResidualBlockWithStride(N, N), AttentionBlock(N), conv(N, N))
        self.decode = nn.Sequential(
            deconv(N, N), GDN(N, inverse=True), ResidualBlockUpsample(N, N), ResidualBlock(N, N), deconv(N, 3)
        )
        self.entropy_bottleneck = EntropyBottleneck(N)

    def forward(self, x):
        y_hat, likelihoods = self.entropy_bottleneck(self.encode(x))
        return {"x_hat": self.decode(y_hat), "likelihoods": {"y": likelihoods}}


class Mixed(Network):
    """With a mixture of Gaussians, whose parts a masked convolution tells."""

    def __init__(self):
        super().__init__()
        self.context = MaskedConv2d(N, 9 * N, 5, padding=2)
        self.mixture = GaussianMixtureConditional(K=3, scale_table=None)

    def forward(self, x):
        y = self.encode(x)
        y_hat = self.mixture.quantize(y, "noise" if self.training else "dequantize")
        scales, means, weights = self.context(y_hat).chunk(3, 1)
        weights = weights.reshape(y.shape[0], 3, N, *y.shape[2:]).softmax(1).flatten(1, 2)
        _, likelihoods = self.mixture(y, scales.abs() + 0.1, means, weights)
        z_hat, more = self.entropy_bottleneck(y)
        return {"x_hat": self.decode(z_hat), "likelihoods": {"y": likelihoods, "z": more}}


STEPS["network"] = by_hand(Network)
STEPS["network_of_mixtures"] = by_hand(Mixed)


def hyper():
    return HyperLatentCodec(
        entropy_bottleneck=EntropyBottleneck(N),
        h_a=nn.Sequential(conv(N, N, 3, 1), nn.ReLU(), conv(N, N)),
        h_s=nn.Sequential(deconv(N, N), nn.ReLU(), conv(N, 2 * N, 3, 1)),
    )


def of_codec(codec):
    """An autoencoder whose latents are coded by a codec that is put together of others."""

    def net():
        made = M.SimpleVAECompressionModel()
        made.g_a = nn.Sequential(conv(3, N), GDN(N), conv(N, N), GDN(N), conv(N, N))
        made.g_s = nn.Sequential(deconv(N, N), GDN(N, inverse=True), deconv(N, N), GDN(N, inverse=True), deconv(N, 3))
        made.latent_codec = codec()
        return made

    return net


def merged(width):
    return nn.Sequential(nn.Conv2d(width, 2 * N, 1), nn.ReLU(), nn.Conv2d(2 * N, 2 * N, 1))


STEPS["codec_bottleneck"] = by_hand(of_codec(lambda: EntropyBottleneckLatentCodec(channels=N)))
STEPS["codec_hyperprior"] = by_hand(
    of_codec(
        lambda: HyperpriorLatentCodec(
            latent_codec={"hyper": hyper(), "y": GaussianConditionalLatentCodec(quantizer="ste")}
        )
    )
)
STEPS["codec_rasterscan"] = by_hand(
    of_codec(
        lambda: HyperpriorLatentCodec(
            latent_codec={
                "hyper": hyper(),
                "y": RasterScanLatentCodec(
                    gaussian_conditional=GaussianConditional(None),
                    entropy_parameters=merged(4 * N),
                    context_prediction=MaskedConv2d(N, 2 * N, 5, padding=2),
                ),
            }
        )
    )
)


def checkered(passes):
    return lambda: HyperpriorLatentCodec(
        latent_codec={
            "hyper": hyper(),
            "y": CheckerboardLatentCodec(
                latent_codec={"y": GaussianConditionalLatentCodec(quantizer="ste")},
                entropy_parameters=merged(4 * N),
                context_prediction=MaskedConv2d(N, 2 * N, 5, padding=2),
                forward_method=passes,
            ),
        }
    )


for passes in ("onepass", "twopass", "twopass_faster"):
    STEPS[f"codec_checkerboard_{passes}"] = by_hand(of_codec(checkered(passes)))
STEPS["codec_groups"] = by_hand(
    of_codec(
        lambda: HyperpriorLatentCodec(
            latent_codec={
                "hyper": hyper(),
                "y": ChannelGroupsLatentCodec(
                    groups=[3, 5],
                    channel_context={"y1": nn.Conv2d(3, 10, 5, padding=2)},
                    latent_codec={
                        "y0": GaussianConditionalLatentCodec(entropy_parameters=nn.Conv2d(2 * N, 6, 1)),
                        "y1": GaussianConditionalLatentCodec(entropy_parameters=nn.Conv2d(2 * N + 10, 10, 1)),
                    },
                ),
            }
        )
    )
)


class Frames(torch.utils.data.Dataset):
    """Some pictures of each video."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return [torch.rand(3, 128, 128) for _ in range(2)]


def videos(**more):
    def make():
        net = ScaleSpaceFlow(num_levels=3).to(D)
        optimizer, aux = of_videos.configure_optimizers(net, RATES)
        batches = torch.utils.data.DataLoader(Frames(), 1)
        loss = of_videos.RateDistortionLoss(lmbda=0.01, **more)

        def fit():
            with contextlib.redirect_stdout(io.StringIO()):
                of_videos.train_one_epoch(net, loss, batches, optimizer, aux, 0, 1.0)

        return loop(fit, optimizers=2)

    return make


STEPS["video"] = videos()
STEPS["video_in_detail"] = videos(return_details=True)


def clouds(points):
    return lambda: [{"pos": torch.randn(points, 3)} for _ in range(ROWS * BATCHES)]


STEPS["points"] = trained(
    lambda: PointNetReconstructionPccModel(
        64, {"g_a": [3, 8, 8, 16], "g_s": [16, 16, 192]}, {"g_a": [1, 1, 1]}
    ),
    clouds(64),
    ChamferPccRateDistortionLoss,
    of_points,
)  # fmt: skip
STEPS["points_in_sets"] = trained(
    lambda: PointNet2SsgReconstructionPccModel(
        num_points=64, D=(0, 16, 16, 32), P=(64, 16, 4, 1), S=(None, 4, 4, 4), E=(3, 8, 8, 8, 0), M=(0, 0, 8, 8)
    ),
    clouds(64),
    ChamferPccRateDistortionLoss,
    of_points,
)  # fmt: skip


def dense(**more):
    def make():
        net = DensityPreservingReconstructionPccModel(hidden_dim=8, k=4, **more).to(D)
        optimizer, aux = of_points.configure_optimizers(net, RATES)
        batches = torch.utils.data.DataLoader(clouds(128)(), 1)
        loss = RateDistortionLoss_hrtzxf2022(compress_normal=more.get("compress_normal", False))

        def fit():
            with contextlib.redirect_stdout(io.StringIO()):
                of_points.train_one_epoch(net, loss, batches, optimizer, aux, 0, 1.0)

        return loop(fit, optimizers=2)

    return make


STEPS["points_dense"] = dense()
