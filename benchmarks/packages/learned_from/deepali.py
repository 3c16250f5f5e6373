"""Training steps over hf-deepali 0.6.5: images are laid over each other by each kind of transform and loss, networks that cut and move."""

import deepali.losses as losses
import deepali.losses.functional as L
import deepali.spatial as spatial
from deepali.core import Axes, Grid
from deepali.core import flow as U
from deepali.losses.flow import GradLoss
from deepali.data import FlowFields, ImageBatch
from deepali.networks.resnet import ResNet
from deepali.networks.unet import SequentialUNet, UNet
from deepali.spatial import ImageTransformer, PointSetTransformer, TransformConfig
from torch.nn import functional as F

SIZE = 12


def box(dims=3, size=SIZE):
    return Grid(size=(size,) * dims)


def blob(dims=3, size=SIZE, shift=0.0):
    """A soft ball, of one image."""
    at = torch.stack(torch.meshgrid(*[torch.linspace(-1, 1, size)] * dims, indexing="ij"))
    return torch.exp(-4 * (at - shift).square().sum(0))[None, None].to(D)


def laid(transform, loss=None, dims=3, penalty=None, mask=False, optimizer=torch.optim.Adam, told=False, size=SIZE):
    """Of the tutorials: the source is warped, compared with the target, the transform's parameters are bettered."""

    def make():
        grid = box(dims, size)
        held = transform(grid).to(D)
        warp = ImageTransformer(held).to(D)
        source, target = blob(dims, size, 0.2), blob(dims, size)
        inside = (target > 0.05).float()
        compare = loss(source, target) if loss else losses.SSD()
        step_of = optimizer(held.parameters(), lr=1e-2)

        def go():
            warped = warp(source)
            value = compare(warped, target, mask=inside) if mask else compare(warped, target)
            if penalty:
                value = value + 0.01 * penalty(held)
            step_of.zero_grad()
            value.backward()
            step_of.step()
            return float(value.detach()) if told else None

        return go

    return make


def ffd(grid):
    return spatial.FreeFormDeformation(grid, stride=4)


def svffd(grid):
    return spatial.StationaryVelocityFreeFormDeformation(grid, stride=4, steps=3)


KINDS = {
    "ffd": ffd, "svffd": svffd, "ffd_transposed": lambda grid: spatial.FreeFormDeformation(grid, stride=3, transpose=True),
    "displaced": spatial.DisplacementFieldTransform, "displaced_coarsely": lambda grid: spatial.DisplacementFieldTransform(grid, stride=2),
    "flowing": lambda grid: spatial.StationaryVelocityFieldTransform(grid, steps=3),
}  # fmt: skip
for name in (
    "HomogeneousTransform Translation EulerRotation QuaternionRotation IsotropicScaling AnisotropicScaling Shearing RigidTransform "
    "RigidQuaternionTransform SimilarityTransform AffineTransform FullAffineTransform"
).split():
    KINDS[name] = getattr(spatial, name)
for name, kind in KINDS.items():
    STEPS[f"laid_{name}"] = laid(kind)
for name in ("ffd", "flowing"):
    STEPS[f"laid_{name}_flat"] = laid(KINDS[name], dims=2, size=20)
for name in ("RigidTransform", "AffineTransform"):
    STEPS[f"laid_{name}_flat"] = laid(KINDS[name], dims=2, size=20, told=True)


def configured(words, **more):
    return lambda grid: spatial.GenericSpatialTransform(grid, config=TransformConfig(transform=words, **more))


STEPS["generic_affine"] = laid(configured("Affine"))
STEPS["generic_affine_ffd"] = laid(configured("Affine o FFD", control_point_spacing=4))
STEPS["generic_affine_svf"] = laid(configured("Affine o SVF", scaling_and_squaring_steps=3))
STEPS["generic_rotations"] = laid(configured("Affine", affine_model="T o R o S", rotation_model="XYZ"))
STEPS["two_levels"] = laid(lambda grid: spatial.MultiLevelTransform(spatial.AffineTransform(grid), ffd(grid)))
STEPS["one_after_another"] = laid(lambda grid: spatial.SequentialTransform(spatial.AffineTransform(grid), svffd(grid)))


def of_both(kind, **more):
    return lambda source, target: kind(source, target, norm=True, **more)


COMPARED = {
    "dice": lambda *_: losses.Dice(), "ncc": lambda *_: losses.NCC(), "lcc": lambda *_: losses.LCC(5), "wlcc": lambda *_: losses.WLCC(5),
    "l1": of_both(losses.L1ImageLoss), "huber": of_both(losses.HuberImageLoss, delta=0.5), "smooth_l1": of_both(losses.SmoothL1ImageLoss),
    "l2": of_both(losses.L2ImageLoss), "ssd": of_both(losses.SSD), "mi": lambda *_: losses.MI(bins=16), "nmi": lambda *_: losses.NMI(bins=16),
    "mi_of_some": lambda *_: losses.MI(vmin=0, vmax=1, bins=16, sample=0.5), "nmi_of_some": lambda *_: losses.NMI(bins=16, num_samples=300),
}  # fmt: skip
for name, loss in COMPARED.items():
    STEPS[f"compared_{name}"] = laid(ffd, loss)
for name in ("dice", "lcc", "wlcc", "l1", "ssd", "mi", "nmi", "mi_of_some", "huber"):
    STEPS[f"compared_{name}_inside"] = laid(ffd, COMPARED[name], mask=True)


@step
def compared_by_patches():
    patches = torch.stack(torch.meshgrid(*[torch.linspace(-0.5, 0.5, 4)] * 3, indexing="ij"), -1)[None].to(D)
    return laid(ffd, lambda *_: losses.PatchwiseImageLoss(patches, losses.NCC()))()


PENALTIES = {
    "grad": GradLoss, "bending": losses.Bending, "curvature": losses.Curvature, "diffusion": losses.Diffusion,
    "divergence": losses.Divergence, "total_variation": losses.TotalVariation,
}  # fmt: skip
for name, kind in PENALTIES.items():
    STEPS[f"kept_smooth_{name}"] = laid(
        svffd, penalty=lambda held, made=kind(): made(held.v if hasattr(held, "v") else held.u)
    )
    STEPS[f"kept_smooth_{name}_by_gauss"] = laid(
        KINDS["displaced"], penalty=lambda held, made=kind(mode="gaussian", sigma=0.7): made(held.u)
    )
STEPS["kept_smooth_by_splines"] = laid(
    ffd, penalty=lambda held, made=losses.BSplineBending(stride=2): made(held.params)
)
for name, kind in {"l1": losses.L1Norm, "l2": losses.L2Norm, "sparse": losses.Sparsity}.items():
    STEPS[f"kept_small_{name}"] = laid(ffd, penalty=lambda held, made=kind(): made(held.params))


@step
def laid_onto_a_finer_grid():
    """The target lies on a finer grid, of which a part counts."""
    grid, fine = box(), box(size=16)
    held = spatial.FreeFormDeformation(grid, stride=4).to(D)
    warp = ImageTransformer(held, target=fine, source=grid, padding="zeros").to(D)
    source, target = blob(shift=0.2), blob(size=16)

    def loss(_):
        return L.mse_loss(warp(source), target, mask=(target > 0.05).float())

    return train(held, loss)


def points(loss, transform=spatial.AffineTransform):
    """Points are moved to others."""

    def make():
        grid = box()
        held = transform(grid).to(D)
        move = PointSetTransformer(held, grid, axes=Axes.CUBE_CORNERS).to(D)
        x, y = torch.rand(1, 40, 3, device=D) - 0.5, torch.rand(1, 40, 3, device=D) - 0.5
        return train(held, lambda _: loss(move(x), y))

    return make


STEPS["points_landmarks"] = points(losses.LandmarkPointDistance())
STEPS["points_closest"] = points(losses.ClosestPointDistance())
STEPS["points_closest_split"] = points(losses.ClosestPointDistance(split_size=16), ffd)


@step
def consistent():
    """A velocity is laid both ways, what one way does the other undoes."""
    grid = box()
    held = spatial.StationaryVelocityFieldTransform(grid, steps=3).to(D)

    def loss(held):
        held.update()
        there, back = held.tensor(), held.inverse(update_buffers=True).tensor()
        return L.inverse_consistency_loss(there, back, grid=grid, margin=1)

    return train(held, loss)


def cut(net, loss, channels=2):
    """A network of volumes says what belongs where."""

    def make():
        x, y = torch.rand(2, 1, 16, 16, 16, device=D), (torch.rand(2, channels, 16, 16, 16, device=D) > 0.5).float()
        return train(net(channels), lambda net: loss(net(x), y))

    return make


CUT = {
    "cross_entropy": lambda x, y: L.balanced_binary_cross_entropy_with_logits(x[:, :1], y[:, :1]), "dice": lambda x, y: L.dice_loss(x.sigmoid(), y),
    "tversky": lambda x, y: 1 - L.tversky_index_with_logits(x, y, alpha=0.3, beta=0.7).mean(), "focal": L.focal_loss_with_logits,
    "tversky_of_shares": lambda x, y: 1 - L.tversky_index(x.softmax(1), y.argmax(1, keepdim=True)).mean(),
    "smoothed": lambda x, y: F.binary_cross_entropy_with_logits(x, L.label_smoothing(y.argmax(1, keepdim=True), 2)),
}  # fmt: skip
for name, loss in CUT.items():
    STEPS[f"cut_{name}"] = cut(lambda channels: SequentialUNet(3, 1, channels), loss)
STEPS["cut_dice_focal"] = cut(
    lambda channels: SequentialUNet(3, 1, channels),
    lambda x, y: L.dice_loss(x.sigmoid(), y) + L.focal_loss_with_logits(x, y),
)


@step
def named():
    x, y = torch.rand(2, 3, device=D), torch.tensor([0, 1], device=D)
    net = ResNet(3, in_channels=1, num_channels=(4, 8), num_blocks=(1, 1), stride=(1, 2), num_classes=2)
    volumes = torch.rand(2, 1, 12, 12, 12, device=D)
    return train(net, lambda net: F.cross_entropy(net(volumes).flatten(1), y))


def moved(of, flat=False):
    """A network says how the source is to be moved, whose warp is compared with the target."""

    def make():
        net = SequentialUNet(3, 2, 3)
        source, target = blob(size=16, shift=0.2), blob(size=16)
        grid = Grid(size=(16, 16, 16))

        def loss(net):
            u = 0.1 * net(torch.cat([source, target], 1)).tanh()
            return of(u, source, target, grid)

        return train(net, loss)

    return make


def warped(source, grid, flow):
    return U.warp_image(source, grid.coords(device=flow.device)[None], flow=flow.movedim(1, -1))


def by_field(u, source, target, grid):
    return L.lcc_loss(warped(source, grid, u), target) + 0.1 * L.bending_loss(u)


def by_velocity(u, source, target, grid):
    flow = U.expv(u, steps=3)
    return L.ncc_loss(warped(source, grid, flow), target) + 0.1 * U.divergence(flow).square().mean()


def by_images(u, source, target, grid):
    flow = FlowFields(u, grid=grid, axes=Axes.CUBE_CORNERS).exp(steps=3)
    return L.mse_loss(flow.warp_image(ImageBatch(source, grid=grid)).tensor(), target)


def by_folds(u, source, target, grid):
    """Where space folds is punished."""
    det = U.jacobian_det(u)
    return L.ssd_loss(warped(source, grid, u), target) + (-det).relu().mean()


for each in (by_field, by_velocity, by_images, by_folds):
    STEPS[f"moved_{each.__name__}"] = moved(each)


@step
def moved_by_transform():
    """What a network says is what the transform holds."""
    net, source, target = SequentialUNet(3, 2, 3), blob(size=16, shift=0.2), blob(size=16)
    held = spatial.DisplacementFieldTransform(box(size=16), params=False).to(D)
    warp = ImageTransformer(held).to(D)

    def loss(net):
        held.data_(0.1 * net(torch.cat([source, target], 1)).tanh())
        return L.mi_loss(warp(source), target, num_bins=16)

    return train(net, loss)


@step
def pyramid():
    """Each step compares at all levels of a pyramid."""
    grid = box(size=16)
    held = spatial.FreeFormDeformation(grid, stride=4).to(D)
    source, target = (ImageBatch(blob(size=16, shift=s), grid=grid).pyramid(2) for s in (0.2, 0.0))
    warps = [ImageTransformer(held, target=target[n].grid(), source=source[n].grid()).to(D) for n in target]

    def loss(_):
        return sum(
            L.ssd_loss(warp(source[n].tensor()), target[n].tensor()) for n, warp in zip(target, warps, strict=True)
        )

    return train(held, loss)


@step
def sampled():
    """Images are read along coordinates that are learned."""
    grid = box()
    image = ImageBatch(blob(), grid=grid)
    coords = torch.nn.Parameter(torch.rand(1, 30, 3, device=D) - 0.5)
    held = torch.nn.Module()
    held.coords = coords
    return train(held, lambda net: -image.sample(net.coords).mean())
