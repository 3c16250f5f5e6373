"""Training steps over super-image 0.2.0: batches of its trainer with each of its networks, and of a loop by hand where these ask for more."""

import tempfile

absent("torchvision")

import super_image
from torch.nn import functional as F
from torch.utils.data import TensorDataset

SMALL = 16


def pictures(scale, rows=24, size=SMALL):
    return TensorDataset(torch.rand(rows, 3, size, size), torch.rand(rows, 3, size * scale, size * scale))


def made(name, scale=2, **more):
    return getattr(super_image, f"{name}Model")(getattr(super_image, f"{name}Config")(scale=scale, **more))


def enlarged(name, scale=2, size=SMALL, args=None, **more):
    """A step is a batch of the trainer of the readme."""

    def make():
        given = {"num_train_epochs": 3, "per_device_train_batch_size": 2, **(args or {})}
        trainer = super_image.Trainer(
            model=made(name, scale, **more), args=super_image.TrainingArguments(output_dir=tempfile.mkdtemp(), **given),
            train_dataset=pictures(scale, size=size), eval_dataset=pictures(scale, 2, size),
        )  # fmt: skip
        return loop(trainer.train)

    return make


STEPS["edsr"] = enlarged("Edsr", n_resblocks=2, n_feats=16)
STEPS["edsr_by_three"] = enlarged("Edsr", 3, n_resblocks=2, n_feats=16)
STEPS["edsr_by_four"] = enlarged("Edsr", 4, n_resblocks=2, n_feats=16)
STEPS["edsr_unpinned"] = enlarged(
    "Edsr", n_resblocks=2, n_feats=16, args={"dataloader_pin_memory": False, "learning_rate": 1e-3}
)
STEPS["msrn"] = enlarged("Msrn", n_blocks=2, n_feats=16)
STEPS["msrn_attentive"] = enlarged("Msrn", n_blocks=2, n_feats=64, bam=True)
STEPS["a2n"] = enlarged("A2n", nf=16, unf=8, nb=2)
STEPS["pan"] = enlarged("Pan", nf=16, unf=8, nb=2)
STEPS["pan_attentive"] = enlarged("Pan", nf=40, unf=24, nb=2, bam=True)
STEPS["carn"] = enlarged("Carn", size=8)
STEPS["carn_attentive"] = enlarged("Carn", size=8, bam=True)
STEPS["mdsr"] = enlarged("Mdsr", size=8)
STEPS["mdsr_attentive"] = enlarged("Mdsr", size=8, bam=True)
STEPS["rcan"] = enlarged("Rcan", n_resgroups=2, n_resblocks=2, n_feats=16, reduction=4)
STEPS["rcan_attentive"] = enlarged("Rcan", n_resgroups=2, n_resblocks=2, n_feats=64, bam=True)
STEPS["han"] = enlarged("Han", n_resgroups=10, n_resblocks=1, n_feats=64, size=8)
STEPS["awsrn"] = enlarged("Awsrn", n_resblocks=2, block_feats=32, n_feats=16, n_awru=2)
STEPS["awsrn_by_four"] = enlarged("Awsrn", 4, n_resblocks=2, block_feats=32, n_feats=16, n_awru=2)
STEPS["awsrn_attentive"] = enlarged("Awsrn", n_resblocks=2, block_feats=128, n_feats=32, n_awru=2, bam=True)
STEPS["rnan"] = enlarged("Rnan", n_resgroups=2, n_feats=16, size=8)
STEPS["ddbpn"] = enlarged("Ddbpn", size=8)
STEPS["drln"] = enlarged("Drln", size=8)


@step
def smsr():
    """What of a picture is worth the work is learned as well: the network says how sparse it was."""
    net, (x, y) = made("Smsr"), pictures(2, 2).tensors
    x, y = x.to(D), y.to(D)

    def loss(net):
        shown, sparsity = net(x)
        return F.l1_loss(shown, y) + 0.1 * sparsity.mean()

    return train(net, loss)


@step
def drn():
    """Of the paper: the pictures of all sizes, and back down again."""
    net, (x, y) = made("Drn", 4, n_blocks=2), pictures(4, 2, 8).tensors
    net.to(D)
    optimizer = torch.optim.Adam(net.parameters(), 1e-4)
    small, large = [x, F.interpolate(x, scale_factor=2)], y

    def go():
        lows, high = [each.to(D) for each in small], large.to(D)
        optimizer.zero_grad()
        shown = net(lows[0])
        value = F.l1_loss(shown[-1], high) + sum(
            F.l1_loss(shown[n - len(shown)], lows[n]) for n in range(len(shown) - 1)
        )
        for n, back in enumerate(net.dual_models):
            value = value + 0.1 * F.l1_loss(back(shown[n - len(net.dual_models)]), lows[n])
        value.backward()
        optimizer.step()

    return go


def coordinates(size):
    at = (torch.arange(size) * 2 + 1) / size - 1
    return torch.stack(torch.meshgrid(at, at, indexing="ij"), -1).reshape(-1, 2)


def continuous(**more):
    """Colours are asked for at coordinates."""

    def make():
        net, (x, _) = made("Liif", mlp_dim=[16, 16], **more), pictures(2, 2).tensors
        x, coords = x.to(D), coordinates(24)[None].repeat(2, 1, 1).to(D)
        cell = torch.full_like(coords, 2 / 24)
        colours = torch.rand(2, coords.shape[1], 3, device=D)

        def loss(net):
            net.gen_feat(x)
            return F.l1_loss(net.query_rgb(coords, cell), colours)

        return train(net, loss)

    return make


STEPS["liif"] = continuous()
STEPS["liif_alone"] = continuous(local_ensemble=False)
STEPS["liif_folded"] = continuous(feat_unfold=False)
STEPS["liif_of_no_cells"] = continuous(cell_decode=False)


@step
def jiif():
    """Depths are asked for at coordinates, led by a picture."""
    net = made("Jiif", feat_dim=16, guide_dim=16, mlp_dim=[16, 16])
    coords = coordinates(16)[None].repeat(2, 1, 1).to(D)
    depth = torch.rand(2, 1, 16, 16, device=D)
    data = {
        "image": torch.rand(2, 3, 16, 16, device=D), "lr": F.avg_pool2d(depth, 2), "hr_depth": depth, "hr_coord": coords,
        "lr_pixel": torch.rand(2, 256, 1, device=D), "lr_image": torch.rand(2, 3, 8, 8, device=D),
    }  # fmt: skip
    return train(net, lambda net: F.l1_loss(net(data), depth.reshape(2, -1, 1)))


@step
def masa():
    """A picture is enlarged by the help of another."""
    net = made("Masa", 4)
    small, large, other = (torch.rand(1, 3, n, n, device=D) for n in (24, 96, 96))
    down = F.interpolate(other, scale_factor=0.25)
    return train(net, lambda net: F.l1_loss(net(small, other, down), large))
