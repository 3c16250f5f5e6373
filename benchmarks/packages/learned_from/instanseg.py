"""Training steps over InstanSeg 0.1.2: its epoch of training over its networks, with its loss of instances."""

import types

absent("seaborn skimage rasterio geojson tiffslide monai matplotlib")

from instanseg.utils import AI_utils
from instanseg.utils.AI_utils import train_epoch
from instanseg.utils.loss.instanseg_loss import InstanSeg
from instanseg.utils.models.InstanSeg_UNet import InstanSeg_UNet

SIZE, BATCH = 32, 2
AI_utils.global_step = 0


def labelled(kinds=1, sparse=False):
    """Images, and squares in them that are numbered."""
    labels = torch.zeros(BATCH, kinds, SIZE, SIZE)
    for at in range(BATCH):
        for kind in range(kinds):
            for number, (top, left) in enumerate(((2, 2), (2, 18), (18, 4), (20, 20)), 1):
                labels[at, kind, top : top + 9 - 3 * kind, left : left + 9 - 3 * kind] = number
    if sparse:
        labels[:, :, :, 28:] = -1
    return torch.rand(BATCH, 3, SIZE, SIZE), labels.long()


def trained(
    kinds=1,
    sparse=False,
    optimizer=torch.optim.Adam,
    clip=20.0,
    norm="BATCH",
    heads=False,
    batches=1,
    width=5,
    weight=None,
    cap=None,
    **more,
):
    """A step is an epoch of a batch, or two, as its script trains."""

    def make():
        judge = InstanSeg(n_sigma=2, device=D, window_size=16, cells_and_nuclei=kinds == 2, **more)
        if weight is not None:
            judge.instance_weight = weight
        if cap:
            judge.num_instance_cap = cap
        out = [[2, 2, judge.dim_seeds]] * kinds if heads else judge.dim_out
        net = InstanSeg_UNet(3, out, layers=[16, 8], norm=norm)
        net = judge.initialize_pixel_classifier(net, MLP_width=width).to(D)
        rows = [(*labelled(kinds, sparse), None) for _ in range(batches)]
        settings = types.SimpleNamespace(on_cluster=True, clip=clip)
        learns = optimizer(net.parameters(), 1e-3)
        return lambda: train_epoch(net, D, rows, judge, learns, settings)

    return make


STEPS["nuclei"] = trained()
STEPS["nuclei_of_two_batches"] = trained(batches=2)
STEPS["nuclei_by_distance"] = trained(seed_loss_fn="l1_distance")
STEPS["nuclei_by_squared_distance"] = trained(seed_loss_fn="l2_distance")
STEPS["nuclei_by_both"] = trained(seed_loss_fn="distance_and_binary_loss", dim_seeds=2)
STEPS["nuclei_against_background"] = trained(bg_weight=0.5)
STEPS["nuclei_sparsely_labelled"] = trained(sparse=True)
STEPS["nuclei_sparsely_labelled_by_distance"] = trained(sparse=True, seed_loss_fn="l1_distance")
STEPS["nuclei_seeds_alone"] = trained(weight=0)
STEPS["nuclei_capped"] = trained(cap=2)
STEPS["nuclei_and_cells"] = trained(2)
STEPS["nuclei_and_cells_of_two_heads"] = trained(2, heads=True)
STEPS["nuclei_sgd"] = trained(optimizer=torch.optim.SGD, norm="INSTANCE")
STEPS["nuclei_adamw"] = trained(optimizer=torch.optim.AdamW, norm=None, clip=1.0)
