"""Training steps over ocnn 2.3.3: octrees built of points on the device, or in the host's memory as a loader does, and its networks."""

import os

os.environ["OCNN_DISABLE_TRITON"] = "1"  # it needs a GPU
absent("torchvision")

import ocnn
from ocnn.dataset import CollateBatch
from ocnn.octree import Octree, Points
from torch.nn.functional import cross_entropy

DEPTH, FULL, BATCH = 4, 2, 2


def points(n=120):
    return Points(
        torch.rand(n, 3) * 1.6 - 0.8, torch.randn(n, 3), torch.rand(n, 4), torch.randint(0, 4, (n, 1)).float()
    )


def octrees(device="cuda", count=BATCH):
    """What a loader gives: a batch, built where it says."""
    built = []
    for _ in range(count):
        octree = Octree(DEPTH, FULL, device=device)
        octree.build_octree(points().to(device))
        built.append(octree)
    octree = ocnn.octree.merge_octrees(built)
    octree.construct_all_neigh()
    return octree


def of_a_loader():
    collate = CollateBatch(merge_points=True)

    def batch():
        many = []
        for _ in range(BATCH):
            octree = Octree(DEPTH, FULL)
            octree.build_octree(each := points())
            many.append({"octree": octree, "points": each, "label": 1})
        return collate(many)

    return batch


def classified(net, nempty=False, feature="ND"):
    batch = of_a_loader()
    of = ocnn.modules.InputFeature(feature, nempty)

    def loss(net):
        given = batch()
        octree = given["octree"].cuda(non_blocking=True)
        data = of(octree)
        return cross_entropy(net(data, octree, octree.depth), given["label"].cuda())

    return train(net, loss)


@step
def lenet():
    return classified(ocnn.models.LeNet(4, 5, stages=2))


@step
def resnet():
    return classified(ocnn.models.ResNet(4, 5, 1, stages=2))


@step
def hrnet():
    return classified(ocnn.models.HRNet(4, 5, stages=2))


def segmented(make, nempty, where, depth=DEPTH):
    net = make()
    of = ocnn.modules.InputFeature("ND", nempty)

    def loss(net):
        cloud = [points().cuda() if where == "cuda" else points() for _ in range(BATCH)]
        built = []
        for each in cloud:
            octree = Octree(depth, FULL, device=where)
            octree.build_octree(each)
            built.append(octree)
        octree = ocnn.octree.merge_octrees(built)
        octree.construct_all_neigh()
        together = ocnn.octree.merge_points(cloud)
        octree, together = octree.cuda(), together.cuda()
        asked = torch.cat([together.points, together.batch_id], dim=1)
        logits = net(of(octree), octree, octree.depth, asked)
        labels = together.labels.squeeze(1).long()
        return cross_entropy(logits, labels)

    return train(net, loss)


@step
def unet_nempty():
    return segmented(lambda: ocnn.models.UNet(4, 5, nempty=True), True, "cuda", 6)


@step
def segnet():
    return segmented(lambda: ocnn.models.SegNet(4, 5, stages=2), False, "cuda")


def rebuilt(net, truth):
    of = octrees

    def loss(net):
        octree = of()
        given = net(octree, octree, False) if truth else net(octree, update_octree=True)
        value = given["signal"].square().mean()
        for d, logit in given["logits"].items():
            if truth:
                value = value + cross_entropy(logit, octree.nempty_mask(d).long())
            else:
                value = value + logit.square().mean()
        return value

    return train(net, loss)


@step
def ounet():
    return rebuilt(ocnn.models.OUNet(4, 4, DEPTH, FULL), True)


@step
def ounet_grown():
    return rebuilt(ocnn.models.OUNet(4, 4, DEPTH, FULL), False)


@step
def autoencoder_grown():
    return rebuilt(ocnn.models.AutoEncoder(4, 4, DEPTH, FULL), False)


@step
def autoencoder():
    def loss(net):
        octree = octrees()
        given = net(octree, update_octree=False)
        return given["signal"].square().mean() + sum(
            cross_entropy(logit, octree.nempty_mask(d).long()) for d, logit in given["logits"].items()
        )

    return train(ocnn.models.AutoEncoder(4, 4, DEPTH, FULL), loss)


class Layers(torch.nn.Module):
    """Layers that none of the networks has."""

    def __init__(self, nempty):
        super().__init__()
        self.into = ocnn.nn.OctreeConv(4, 8, [3], nempty=nempty, use_bias=True)
        self.deep = ocnn.nn.OctreeDWConv(8, nempty=nempty)
        self.grouped = ocnn.nn.OctreeGroupConv(8, 8, [3], nempty=nempty, group=2) if not nempty else torch.nn.Identity()
        self.norms = torch.nn.ModuleList([ocnn.nn.OctreeGroupNorm(8, 2, nempty), ocnn.nn.OctreeInstanceNorm(8, nempty)])
        self.drop = ocnn.nn.OctreeDropPath(0.5, nempty)
        self.down = ocnn.nn.OctreeMaxPool(nempty)
        self.up = ocnn.nn.OctreeUpsample("linear", nempty)
        self.all = ocnn.nn.OctreeGlobalPool(nempty)
        self.nempty = nempty

    def forward(self, data, octree):
        d = octree.depth
        x = self.deep(self.into(data, octree, d), octree, d)
        if not self.nempty:
            x = self.grouped(x, octree, d)
        for norm in self.norms:
            x = norm(x, octree, d)
        x = self.drop(x, octree, d)
        x = self.up(self.down(x, octree, d), octree, d - 1)
        return self.all(x, octree, d)


def layered(nempty):
    of = ocnn.modules.InputFeature("ND", nempty)

    def loss(net):
        octree = octrees()
        return net(of(octree), octree).square().mean()

    return train(Layers(nempty), loss)


@step
def layers():
    return layered(False)


@step
def layers_nempty():
    return layered(True)
