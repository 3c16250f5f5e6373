"""Training steps over torch_geometric_signed_directed 1.2.0: its networks and losses, over small graphs that lie on the device."""

import scipy.sparse as sp
import torch_geometric_signed_directed as pkg
from torch_geometric_signed_directed import nn, utils

absent("torch_sparse torch_scatter")
N, E, CLASSES = 24, 90, 3
F = torch.nn.functional


def edges(e=E):
    drawn = torch.randint(0, N, (2, 4 * e))
    drawn = torch.unique(drawn[:, drawn[0] != drawn[1]], dim=1)
    return drawn[:, torch.randperm(drawn.size(1))[:e]].contiguous()


def signed():
    index = edges()
    sign = torch.where(torch.rand(index.size(1)) < 0.6, 1, -1)
    return torch.cat([index, sign[None]]).T.contiguous().cuda()


def weights(index):
    return torch.rand(index.size(1)).cuda()


def labels():
    return (torch.arange(N) % CLASSES).cuda()


def own(make):
    """One whose `loss` needs nothing."""

    def made():
        return train(make(N, signed()), lambda net: net.loss())

    return made


for name in ("SGCN", "SNEA", "SiGAT", "SDGNN"):
    STEPS[name.lower()] = own(lambda n, e, kind=getattr(nn, name): kind(n, e, 8, 8))


def of_nodes(net, *given):
    mask = (torch.rand(N) < 0.6).cuda()
    y = labels()
    return train(net, lambda net: F.nll_loss(net(*given)[mask], y[mask]))


def of_edges(net, *given):
    y = torch.randint(0, 2, (20,)).cuda()
    return train(net, lambda net: F.nll_loss(net(*given), y))


def x(width=4):
    return torch.randn(N, width).cuda()


QUERY = torch.randint(0, N, (20, 2))


@step
def magnet():
    e = edges().cuda()
    return of_nodes(
        nn.MagNet_node_classification(4, 4, K=1, label_dim=CLASSES, dropout=0.5, trainable_q=True),
        x(),
        x(),
        e,
        weights(e),
    )


@step
def magnet_links():
    e = edges().cuda()
    return of_edges(nn.MagNet_link_prediction(4, 4, K=2, normalization=None), x(), x(), e, QUERY.cuda(), weights(e))


@step
def magnet_cached():
    e = edges().cuda()
    return of_nodes(nn.MagNet_node_classification(4, 4, K=1, label_dim=CLASSES, dropout=0.5, cached=True), x(), x(), e)


@step
def msgnn():
    e = edges().cuda()
    sign = torch.where(torch.rand(e.size(1)) < 0.6, 1.0, -1.0).cuda()
    return of_nodes(nn.MSGNN_node_classification(4, 4, K=1, label_dim=CLASSES, dropout=0.5), x(), x(), e, sign)


@step
def msgnn_links():
    e = edges().cuda()
    return of_edges(nn.MSGNN_link_prediction(4, 4, K=1, trainable_q=True), x(), x(), e, QUERY.cuda(), weights(e))


@step
def dgcn():
    e = edges().cuda()
    into, out = edges().cuda(), edges().cuda()
    return of_nodes(nn.DGCN_node_classification(4, 8, CLASSES), x(), e, into, out, weights(into), weights(out))


@step
def dgcn_links():
    e = edges().cuda()
    into, out = edges().cuda(), edges().cuda()
    return of_edges(nn.DGCN_link_prediction(4, 8, 2, 0.5), x(), e, into, out, QUERY.cuda(), weights(into), weights(out))


@step
def digcn():
    e = edges().cuda()
    return of_nodes(nn.DiGCN_node_classification(4, 8, CLASSES), x(), e, weights(e))


@step
def digcn_links():
    e = edges().cuda()
    return of_edges(nn.DiGCN_link_prediction(4, 8, 2), x(), e, QUERY.cuda(), weights(e))


@step
def inception():
    e, f = edges().cuda(), edges().cuda()
    return of_nodes(nn.DiGCN_Inception_Block_node_classification(4, 8, CLASSES), x(), (e, f), (weights(e), weights(f)))


@step
def inception_links():
    e, f = edges().cuda(), edges().cuda()
    return of_edges(
        nn.DiGCN_Inception_Block_link_prediction(4, 8, 2), x(), (e, f), QUERY.cuda(), (weights(e), weights(f))
    )


def digcl_of(batch):
    def loss(net):
        e, w = utils.get_appr_directed_adj(0.1, given, N, torch.float32)
        f, v = utils.cal_fast_appr(0.2, given, N, torch.float32) if not batch else (e, w)
        one, two = utils.drop_feature(seen, 0.3), utils.drop_feature(seen, 0.2)
        return net.loss(net(one, e, w), net(two, f, v), batch_size=batch)

    given, seen = edges().cuda(), x()
    return train(nn.DiGCL(4, "relu", 8, 8, 0.4, 2), loss)


@step
def digcl():
    return digcl_of(0)


@step
def digcl_batches():
    return digcl_of(8)


def matrix(e):
    return sp.csr_matrix((np.ones(e.size(1), dtype=np.float32), e.numpy()), (N, N))


def digrac_of(**how):
    e = edges()
    a = torch.sparse_coo_tensor(e, torch.ones(e.size(1)), (N, N)).cuda()
    imbalance = utils.Prob_Imbalance_Loss(how.pop("F", None))
    e, seen = e.cuda(), x()
    w = weights(e)

    def loss(net):
        _, _, _, prob = net(e, w, seen)
        return imbalance(prob, a, CLASSES, **how)

    return train(nn.DIGRAC_node_clustering(4, 8, CLASSES, 0.5, 0.5, 2), loss)


@step
def digrac():
    return digrac_of(normalization="vol_sum", threshold="sort", F=np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))


@step
def digrac_std():
    return digrac_of(normalization="vol_min", threshold="std")


@step
def digrac_naive():
    return digrac_of(normalization="plain", threshold="naive", F=np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))


@step
def sssnet():
    p, n = edges(), edges(50)
    normalized = utils.Prob_Balanced_Normalized_Loss(matrix(p), matrix(n))
    given = p.cuda(), weights(p), n.cuda(), weights(n), x()
    y = labels()
    seed = (torch.rand(N) < 0.7).cuda()

    def loss(net):
        z, logits, _, prob = net(*given)
        triplet = utils.triplet_loss_node_classification(y=y[seed], Z=z[seed], n_sample=20, thre=0.1)
        return normalized(prob=prob) + F.cross_entropy(logits[seed], y[seed]) + triplet

    return train(nn.SSSNET_node_clustering(4, 8, CLASSES, 0.5, 2, 0.5), loss)


@step
def sssnet_directed():
    p, n = edges(), edges(50)
    ratio, unhappy = utils.Prob_Balanced_Ratio_Loss(matrix(p), matrix(n)), utils.Unhappy_Ratio(matrix(p), matrix(n))
    given = p.cuda(), weights(p), n.cuda(), weights(n), x()

    def loss(net):
        _, _, _, prob = net(*given)
        return ratio(prob=prob) + unhappy(prob)

    return train(nn.SSSNET_node_clustering(4, 8, CLASSES, 0.5, 2, 0.5, directed=True), loss)


@step
def sssnet_links():
    p, n = edges().cuda(), edges(50).cuda()
    return of_edges(nn.SSSNET_link_prediction(4, 8, 2, 0.5, 2, 0.5), p, weights(p), n, weights(n), x(), QUERY.cuda())


def losses_of(make, *more):
    p, n = edges().cuda(), edges(50).cuda()

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.z, self.loss = torch.nn.Parameter(torch.randn(N, 8)), make()

        def forward(self):
            return self.loss(self.z, p, n)

    return train(Net(), lambda net: net())


for name, make in {
    "direction": lambda: utils.Sign_Direction_Loss(8),
    "product": lambda: utils.Sign_Product_Entropy_Loss(),
    "link_product": lambda: utils.Link_Sign_Product_Loss(),
    "link_entropy": lambda: utils.Link_Sign_Entropy_Loss(8),
    "structure": lambda: utils.Sign_Structure_Loss(),
    "triangle": lambda: utils.Sign_Triangle_Loss(8, sp.csc_matrix(matrix(edges()))),
}.items():
    STEPS[f"loss_{name}"] = lambda make=make: losses_of(make)
