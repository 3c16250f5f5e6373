"""Training steps over pykan 0.2.8: fits of its networks of splines, pruned, symbolic and grown between."""

import tempfile

from kan import KAN
from kan.utils import create_dataset


def sine(x):
    return torch.exp(torch.sin(torch.pi * x[:, [0]]) + x[:, [1]] ** 2)


def network(width=(2, 3, 1), **more):
    return KAN(width=[*width], grid=3, k=3, seed=0, auto_save=False, device=D, ckpt_path=tempfile.mkdtemp(), **more)


def fitted(change=None, model=None, steps=2, **more):
    """A step is a `fit` of some of its steps."""

    def make():
        net = network(**(model or {}))
        data = create_dataset(sine, n_var=2, train_num=40, test_num=20, device=D)
        if change:
            net = change(net, data) or net
        return lambda: net.fit(data, steps=steps, **more)

    return make


adam = {"opt": "Adam", "lr": 1e-2}
STEPS["lbfgs"] = fitted()
STEPS["lbfgs_sparse"] = fitted(lamb=0.01)
STEPS["lbfgs_without_grid"] = fitted(update_grid=False)
STEPS["adam"] = fitted(**adam)
STEPS["adam_of_batches"] = fitted(batch=8, **adam)
STEPS["adam_sparse"] = fitted(lamb=0.01, lamb_entropy=10.0, **adam)
STEPS["adam_of_coefficients"] = fitted(lamb=0.01, lamb_coef=0.1, lamb_coefdiff=0.1, **adam)
STEPS["adam_by_edges"] = fitted(lamb=0.01, reg_metric="edge_backward", **adam)
STEPS["adam_by_nodes"] = fitted(lamb=0.01, reg_metric="node_backward", **adam)
STEPS["adam_by_spread"] = fitted(lamb=0.01, reg_metric="edge_forward_spline_n", **adam)
STEPS["adam_by_unnormalized"] = fitted(lamb=0.01, reg_metric="edge_forward_spline_u", **adam)
STEPS["adam_multiplied"] = fitted(model={"width": (2, [2, 1], 1)}, lamb=0.01, **adam)
STEPS["adam_without_symbols"] = fitted(model={"symbolic_enabled": False}, **adam)
STEPS["adam_sparsely_joined"] = fitted(model={"sparse_init": True}, **adam)


def symbolic(net, data):
    net(data["train_input"])
    net.fix_symbolic(0, 0, 0, "sin", verbose=False, log_history=False)
    net.fix_symbolic(1, 0, 0, "exp", verbose=False, log_history=False)


STEPS["adam_symbolic"] = fitted(symbolic, singularity_avoiding=True, **adam)
STEPS["lbfgs_symbolic"] = fitted(symbolic, singularity_avoiding=True)


@step
def adam_with_metrics():
    net = network()
    data = create_dataset(sine, n_var=2, train_num=40, test_num=20, device=D)

    def error():
        return torch.mean((net(data["test_input"]) - data["test_label"]).abs())

    return lambda: net.fit(data, steps=2, metrics=(error,), display_metrics=["error"], **adam)


@step
def own_loop():
    """A loop of the user's over its network and its penalty."""
    net = network()
    x = torch.rand(32, 2, device=D)

    def loss(net):
        out = net(x)
        return (out - sine(x)).square().mean() + 1e-3 * net.get_reg("edge_forward_spline_n", 1.0, 2.0, 0.0, 0.0)

    return train(net, loss)


@step
def own_loop_of_grids():
    """The grid follows the samples in each step."""
    net = network()
    x = torch.rand(32, 2, device=D)

    def loss(net):
        net.update_grid_from_samples(x)
        return (net(x) - sine(x)).square().mean()

    return train(net, loss)


@step
def classes():
    net = network((2, 3, 3))
    x, y = torch.rand(40, 2, device=D), torch.randint(0, 3, (40,), device=D)
    data = {"train_input": x, "train_label": y, "test_input": x[:20], "test_label": y[:20]}
    return lambda: net.fit(data, steps=2, loss_fn=torch.nn.CrossEntropyLoss(), **adam)
