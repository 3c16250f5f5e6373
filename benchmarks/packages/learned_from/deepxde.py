"""Training steps over DeepXDE 1.15.0: its `Model` on equations, operators and functions, by its own loop.

The package makes the GPU torch's default device; so do these steps, which is how its arrays come to the device.
"""

import os
import tempfile

os.environ["DDE_BACKEND"] = "pytorch"

import deepxde as dde
import deepxde.nn.pytorch as nets


def training(make):
    """A step is one iteration of the loop that `Model.train` runs."""

    def made():
        with torch.device(D):
            model, options = make()
            for callback in options.get("callbacks", []):
                callback.set_model(model)
        model.batch_size = options.get("batch_size")
        model.callbacks = dde.callbacks.CallbackList(callbacks=options.get("callbacks", []))
        model.callbacks.set_model(model)
        with torch.device(D):
            model.train_state.set_data_train(*model.data.train_next_batch(model.batch_size))
            model.train_state.set_data_test(*model.data.test())
            model._test(verbose=0)
            model.callbacks.on_train_begin()

        def go():
            model.stop_training = False
            model.callbacks.on_epoch_begin()
            model.callbacks.on_batch_begin()
            with torch.device(D):
                model.train_state.set_data_train(*model.data.train_next_batch(model.batch_size))
                state = model.train_state
                model._train_step(state.X_train, state.y_train, state.train_aux_vars)
                model.train_state.iteration += 1
                model.train_state.step += 1
                model.callbacks.on_batch_end()
                model.callbacks.on_epoch_end()

        return go

    STEPS[make.__name__] = made
    return make


def compiled(data, net, optimizer="adam", lr=1e-3, callbacks=(), batch_size=None, **more):
    model = dde.Model(data, net)
    model.compile(optimizer, **({} if optimizer in ("L-BFGS", "NNCG") else {"lr": lr}), **more)
    return model, {"callbacks": list(callbacks), "batch_size": batch_size}


def network(inputs=1, outputs=1, activation="tanh", **more):
    return nets.FNN([inputs, 16, 16, outputs], activation, "Glorot uniform", **more)


def right(x, on_boundary):
    return on_boundary and bool(np.isclose(x[0], 1))


def left(x, on_boundary):
    return on_boundary and bool(np.isclose(x[0], -1))


def everywhere(_, on_boundary):
    return on_boundary


def initially(_, on_initial):
    return on_initial


def poisson(x, y):
    return -dde.grad.hessian(y, x) - np.pi**2 * torch.sin(np.pi * x)


def line():
    return dde.geometry.Interval(-1, 1)


def sine(x):
    return np.sin(np.pi * x)


@training
def poisson_dirichlet():
    condition = dde.icbc.DirichletBC(line(), sine, everywhere)
    data = dde.data.PDE(line(), poisson, condition, 16, 2, solution=sine, num_test=20)
    return compiled(data, network(), metrics=["l2 relative error"])


@training
def poisson_neumann_and_robin():
    conditions = [
        dde.icbc.NeumannBC(line(), lambda x: 2 * (x + 1), right),
        dde.icbc.RobinBC(line(), lambda x, y: y, left),
    ]
    data = dde.data.PDE(line(), lambda x, y: dde.grad.hessian(y, x) - 2, conditions, 16, 2, num_test=20)
    return compiled(data, network(), loss_weights=[1, 10, 10], decay=("step", 100, 0.9))


@training
def poisson_periodic():
    conditions = [
        dde.icbc.DirichletBC(line(), sine, left),
        dde.icbc.PeriodicBC(line(), 0, right),
        dde.icbc.OperatorBC(line(), lambda x, y, _: dde.grad.jacobian(y, x) - 1, right),
    ]
    return compiled(dde.data.PDE(line(), poisson, conditions, 16, 2, num_test=20), network(), optimizer="rmsprop")


@training
def poisson_resampled():
    data = dde.data.PDE(line(), poisson, dde.icbc.DirichletBC(line(), sine, everywhere), 16, 2, num_test=20)
    return compiled(data, network(), callbacks=[dde.callbacks.PDEPointResampler(period=1)])


@training
def poisson_forced_boundary():
    net = network()
    net.apply_output_transform(lambda x, y: (1 - x**2) * y)
    return compiled(dde.data.PDE(line(), poisson, [], 16, 2, num_test=20), net, decay=("cosine", 100, 1e-5))


@training
def poisson_by_lbfgs():
    dde.optimizers.set_LBFGS_options(maxiter=20, maxls=0)
    dde.optimizers.config.LBFGS_options["iter_per_step"] = 2
    data = dde.data.PDE(line(), poisson, dde.icbc.DirichletBC(line(), sine, everywhere), 16, 2, num_test=20)
    return compiled(data, network(), optimizer="L-BFGS")


@training
def poisson_by_nncg():
    dde.optimizers.config.set_NNCG_options(rank=4, cgmaxiter=4, updatefreq=2)
    data = dde.data.PDE(line(), poisson, dde.icbc.DirichletBC(line(), sine, everywhere), 16, 2, num_test=20)
    return compiled(data, network(), optimizer="NNCG")


@training
def poisson_around_a_disk():
    shape = dde.geometry.Rectangle([-1, -1], [1, 1]) - dde.geometry.Disk([0, 0], 0.5)

    def equation(x, y):
        return -dde.grad.hessian(y, x, i=0, j=0) - dde.grad.hessian(y, x, i=1, j=1) - 1

    data = dde.data.PDE(shape, equation, dde.icbc.DirichletBC(shape, lambda _: 0, everywhere), 30, 12, num_test=20)
    return compiled(data, network(2, regularization=("l1", 1e-5)))


@training
def burgers():
    space = dde.geometry.GeometryXTime(line(), dde.geometry.TimeDomain(0, 0.99))

    def equation(x, y):
        along, after = dde.grad.jacobian(y, x, i=0, j=0), dde.grad.jacobian(y, x, i=0, j=1)
        return after + y * along - 0.01 / np.pi * dde.grad.hessian(y, x, i=0, j=0)

    conditions = [
        dde.icbc.DirichletBC(space, lambda _: 0, everywhere),
        dde.icbc.IC(space, lambda x: -np.sin(np.pi * x[:, 0:1]), initially),
    ]
    data = dde.data.TimePDE(space, equation, conditions, num_domain=40, num_boundary=8, num_initial=8)
    return compiled(data, network(2))


@training
def diffusion_whose_coefficient_is_sought():
    coefficient = dde.Variable(2.0)
    space = dde.geometry.GeometryXTime(line(), dde.geometry.TimeDomain(0, 1))

    def equation(x, y):
        source = torch.exp(-x[:, 1:]) * torch.sin(np.pi * x[:, 0:1])
        return dde.grad.jacobian(y, x, i=0, j=1) - coefficient * dde.grad.hessian(y, x, i=0, j=0) + source

    def solution(x):
        return np.sin(np.pi * x[:, 0:1]) * np.exp(-x[:, 1:])

    seen = np.vstack((np.linspace(-1, 1, num=10), np.full(10, 1))).T
    conditions = [
        dde.icbc.DirichletBC(space, solution, everywhere),
        dde.icbc.IC(space, solution, initially),
        dde.icbc.PointSetBC(seen, solution(seen)),
    ]
    data = dde.data.TimePDE(
        space, equation, conditions, num_domain=40, num_boundary=20, num_initial=10, anchors=seen, num_test=40
    )
    found = dde.callbacks.VariableValue(coefficient, period=1, filename=tempfile.mktemp())
    return compiled(data, network(2), external_trainable_variables=coefficient, callbacks=[found])


@training
def lorenz_whose_coefficients_are_sought():
    first, second = dde.Variable(1.0), dde.Variable(1.0)
    time = dde.geometry.TimeDomain(0, 3)

    def equations(x, y):
        one, two = y[:, 0:1], y[:, 1:2]
        return [
            dde.grad.jacobian(y, x, i=0) - first * (two - one),
            dde.grad.jacobian(y, x, i=1) - one * (second - two),
        ]

    seen = np.linspace(0, 3, 10)[:, None]
    conditions = [
        dde.icbc.IC(time, lambda _: -8, everywhere, component=0),
        dde.icbc.PointSetBC(seen, np.sin(seen), component=1, batch_size=4, shuffle=True),
    ]
    data = dde.data.PDE(time, equations, conditions, num_domain=20, num_boundary=2, anchors=seen)
    file = tempfile.mktemp()
    return compiled(
        data,
        nets.PFNN([1, [8, 8], [8, 8], 2], "tanh", "Glorot uniform"),
        external_trainable_variables=[first, second],
        callbacks=[dde.callbacks.VariableValue([first, second], period=1, filename=file, precision=3)],
    )


@training
def function_approximated():
    data = dde.data.Function(line(), lambda x: x * np.sin(5 * x), 16, 40)
    return compiled(data, network(), metrics=["l2 relative error"], loss="mean l2 relative error")


@training
def data_set_with_dropout_and_early_stop():
    x = np.random.rand(64, 3).astype("float32")
    data = dde.data.DataSet(x, x.sum(1, keepdims=True), x, x.sum(1, keepdims=True))
    net = network(3, activation="relu", regularization=("l2", 1e-4))
    callbacks = [dde.callbacks.EarlyStopping(min_delta=1e-6, patience=2000), dde.callbacks.Timer(60)]
    return compiled(data, net, optimizer="adamw", callbacks=callbacks)


@training
def checkpointed():
    data = dde.data.Function(line(), sine, 16, 40)
    keeper = dde.callbacks.ModelCheckpoint(tempfile.mkdtemp() + "/model", period=1, save_better_only=True)
    return compiled(data, network(), callbacks=[keeper])


@training
def deeponet():
    branch, trunk = np.random.rand(48, 10).astype("float32"), np.random.rand(48, 1).astype("float32")
    y = np.random.rand(48, 1).astype("float32")
    data = dde.data.Triple((branch, trunk), y, (branch, trunk), y)
    net = nets.DeepONet([10, 16, 16], [1, 16, 16], "relu", "Glorot normal")
    return compiled(data, net, batch_size=16, metrics=["mean l2 relative error"])


def pairs():
    inputs = np.random.rand(20, 10).astype("float32"), np.random.rand(12, 2).astype("float32")
    return inputs, np.random.rand(20, 12).astype("float32")


@training
def deeponet_of_all_pairs():
    x, y = pairs()
    data = dde.data.TripleCartesianProd(x, y, x, y)
    net = nets.DeepONetCartesianProd([10, 16, 16], [2, 16, 16], "relu", "Glorot normal")
    return compiled(data, net, batch_size=8, decay=("exponential", 0.999))


@training
def deeponet_of_two_outputs():
    x, y = pairs()
    y = np.stack([y, y], axis=-1)
    data = dde.data.TripleCartesianProd(x, y, x, y)
    net = nets.DeepONetCartesianProd(
        [10, 16, 16], [2, 16, 16], "gelu", "Glorot normal", num_outputs=2, multi_output_strategy="independent"
    )
    return compiled(data, net, batch_size=8)


@training
def pod_deeponet():
    x, y = pairs()
    data = dde.data.TripleCartesianProd(x, y, x, y)
    basis = np.linalg.svd(y)[2][:6].T.astype("float32")
    return compiled(data, nets.PODDeepONet(basis, [10, 16, 6], "relu", "Glorot normal"), batch_size=8)


@training
def mionet():
    x = tuple(np.random.rand(n, k).astype("float32") for n, k in ((20, 8), (20, 6), (12, 2)))
    y = np.random.rand(20, 12).astype("float32")
    data = dde.data.QuadrupleCartesianProd(x, y, x, y)
    net = nets.MIONetCartesianProd([8, 16, 16], [6, 16, 16], [2, 16, 16], "tanh", "Glorot normal")
    return compiled(data, net, batch_size=8)


def advection():
    space = dde.geometry.GeometryXTime(dde.geometry.Interval(0, 1), dde.geometry.TimeDomain(0, 1))

    def equation(x, y, _):
        return dde.grad.jacobian(y, x, j=1) + dde.grad.jacobian(y, x, j=0)

    def periodic(x):
        return np.sin(2 * np.pi * x[:, 0:1])

    condition = dde.icbc.IC(space, periodic, initially)
    return dde.data.TimePDE(space, equation, condition, num_domain=20, num_initial=8, num_test=20)


@training
def deeponet_of_an_equation():
    data = dde.data.PDEOperator(
        advection(), dde.data.GRF(length_scale=0.4, N=50), np.linspace(0, 1, 10)[:, None], 8, function_variables=[0]
    )
    net = nets.DeepONet([10, 16, 16], [2, 16, 16], "tanh", "Glorot normal")
    return compiled(data, net)


@training
def deeponet_of_an_equation_on_all_pairs():
    where = np.linspace(0, 1, 10)[:, None]
    space = dde.data.GRF(length_scale=0.4, N=50)
    data = dde.data.PDEOperatorCartesianProd(advection(), space, where, 8, function_variables=[0], batch_size=4)
    net = nets.DeepONetCartesianProd([10, 16, 16], [2, 16, 16], "tanh", "Glorot normal")
    return compiled(data, net)
