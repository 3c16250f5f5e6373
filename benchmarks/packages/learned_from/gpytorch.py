"""Training steps over GPyTorch 1.15.2: exact, sparse, variational, deep and latent processes by their marginal likelihoods."""

import contextlib

import gpytorch
from gpytorch import kernels as K
from gpytorch import likelihoods as L
from gpytorch import means, mlls, models, optim
from gpytorch import variational as V

N, DIMS = 24, 2


def data(classes=None, count=None, positive=False):
    x = torch.rand(N, DIMS) * 0.7
    y = torch.sin(6 * x[:, 0]) + 0.1 * torch.randn(N)
    if classes is not None:
        y = torch.randint(classes, (N,)).float()
    if count:
        y = torch.stack([y + 0.1 * i for i in range(count)], -1)
    if positive:
        y = torch.poisson(y.exp())
    return x.to(D), y.to(D)


class Exact(models.ExactGP):
    def __init__(self, x, y, likelihood, kernel, mean=None, tasks=0):
        super().__init__(x, y, likelihood)
        self.mean_module, self.covar_module = mean or means.ConstantMean(), kernel
        self.tasks = tasks

    def forward(self, x):
        mean, covariance = self.mean_module(x), self.covar_module(x)
        if self.tasks:
            return gpytorch.distributions.MultitaskMultivariateNormal(mean, covariance)
        return gpytorch.distributions.MultivariateNormal(mean, covariance)


def fitted(model, mll, x, y, *settings, optimizer=None, **more):
    """A step of the loop that its examples have."""
    optimizers = optimizer or [torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 0.05)]
    model.train()

    def go():
        with contextlib.ExitStack() as stack:
            for each in settings:
                stack.enter_context(each())
            for each in optimizers:
                each.zero_grad()
            loss = -mll(model(*([x] if not isinstance(x, list) else x)), y, **more)
            loss.sum().backward()
            for each in optimizers:
                each.step()

    return go


def exact(kernel, likelihood=None, mean=None, mll=mlls.ExactMarginalLogLikelihood, tasks=0, settings=(), **more):
    def make():
        x, y = data(count=tasks or None)
        lik = (likelihood() if likelihood else L.GaussianLikelihood()).to(D)
        model = Exact(x, y, lik, kernel(), mean() if mean else None, tasks).to(D)
        lik.train()
        return fitted(model, mll(lik, model), x, y, *settings, **more)

    return make


STEPS["rbf"] = exact(lambda: K.ScaleKernel(K.RBFKernel()))
STEPS["ard"] = exact(
    lambda: K.ScaleKernel(
        K.RBFKernel(ard_num_dims=DIMS, lengthscale_prior=gpytorch.priors.GammaPrior(3.0, 6.0)),
        outputscale_prior=gpytorch.priors.GammaPrior(2.0, 0.15),
    )
)
KERNELS = {
    "matern_half": lambda: K.MaternKernel(nu=0.5),
    "matern": lambda: K.MaternKernel(nu=2.5, ard_num_dims=DIMS),
    "periodic": K.PeriodicKernel,
    "rational_quadratic": K.RQKernel,
    "linear": K.LinearKernel,
    "polynomial": lambda: K.PolynomialKernel(2),
    "cosine": lambda: K.CosineKernel() + K.RBFKernel(),
    "piecewise": lambda: K.PiecewisePolynomialKernel(q=2),
    "spectral_mixture": lambda: K.SpectralMixtureKernel(num_mixtures=2, ard_num_dims=DIMS),
    "spectral_delta": lambda: K.SpectralDeltaKernel(num_dims=DIMS, num_deltas=8),
    "random_features": lambda: K.RFFKernel(num_samples=8, num_dims=DIMS),
    "arc": lambda: K.ArcKernel(
        K.MaternKernel(nu=2.5), angle_prior=gpytorch.priors.GammaPrior(0.5, 1), ard_num_dims=DIMS
    ),
    "cylindrical": lambda: K.CylindricalKernel(3, K.MaternKernel(nu=2.5)),
    "additive": lambda: K.AdditiveStructureKernel(K.RBFKernel(), num_dims=DIMS),
    "newton_girard": lambda: K.NewtonGirardAdditiveKernel(K.RBFKernel(), DIMS),
    "product": lambda: K.RBFKernel(active_dims=[0]) * K.MaternKernel(active_dims=[1]),
    "sum": lambda: K.RBFKernel() + K.LinearKernel() + K.ConstantKernel(),
    "hamming": lambda: K.HammingIMQKernel(vocab_size=2),
    "grid_interpolation": lambda: K.GridInterpolationKernel(K.RBFKernel(), grid_size=8, num_dims=DIMS),
    "grid_interpolation_in_bounds": lambda: K.GridInterpolationKernel(
        K.RBFKernel(), grid_size=8, num_dims=DIMS, grid_bounds=[(0.0, 1.0)] * DIMS
    ),
}
for name, kernel in KERNELS.items():
    STEPS[f"kernel_{name}"] = exact(lambda kernel=kernel: K.ScaleKernel(kernel()))
STEPS["iterative"] = exact(
    lambda: K.ScaleKernel(K.RBFKernel()),
    settings=[lambda: gpytorch.settings.max_cholesky_size(1), lambda: gpytorch.settings.num_trace_samples(4)],
)
STEPS["iterative_with_a_preconditioner"] = exact(
    lambda: K.ScaleKernel(K.MaternKernel(nu=1.5)),
    settings=[
        lambda: gpytorch.settings.max_cholesky_size(1),
        lambda: gpytorch.settings.max_preconditioner_size(5),
        lambda: gpytorch.settings.min_preconditioning_size(1),
    ],
)
STEPS["leave_one_out"] = exact(lambda: K.ScaleKernel(K.RBFKernel()), mll=mlls.LeaveOneOutPseudoLikelihood)
STEPS["linear_mean"] = exact(lambda: K.ScaleKernel(K.RBFKernel()), mean=lambda: means.LinearMean(DIMS))
STEPS["fixed_noise"] = exact(
    lambda: K.ScaleKernel(K.RBFKernel()),
    lambda: L.FixedNoiseGaussianLikelihood(torch.full((N,), 0.1), learn_additional_noise=True),
)
STEPS["dirichlet_classification"] = lambda: dirichlet()
STEPS["multitask"] = exact(
    lambda: K.MultitaskKernel(K.RBFKernel(), num_tasks=2, rank=1),
    lambda: L.MultitaskGaussianLikelihood(num_tasks=2, rank=1),
    lambda: means.MultitaskMean(means.ConstantMean(), num_tasks=2),
    tasks=2,
)
STEPS["coregionalized"] = exact(
    lambda: K.LCMKernel([K.RBFKernel(), K.MaternKernel()], num_tasks=2, rank=1),
    lambda: L.MultitaskGaussianLikelihood(num_tasks=2),
    lambda: means.MultitaskMean(means.ZeroMean(), num_tasks=2),
    tasks=2,
)


def dirichlet():
    x, _ = data()
    labels = torch.randint(3, (N,)).to(D)
    lik = L.DirichletClassificationLikelihood(labels, learn_additional_noise=True).to(D)
    shape = torch.Size([lik.num_classes])
    kernel = K.ScaleKernel(K.RBFKernel(batch_shape=shape), batch_shape=shape)
    model = Exact(x, lik.transformed_targets, lik, kernel, means.ConstantMean(batch_shape=shape)).to(D)
    return fitted(model, mlls.ExactMarginalLogLikelihood(lik, model), x, lik.transformed_targets)


@step
def sparse_regression():
    x, y = data()
    lik = L.GaussianLikelihood().to(D)
    base = K.ScaleKernel(K.RBFKernel())
    model = Exact(x, y, lik, K.InducingPointKernel(base, inducing_points=x[:6].clone(), likelihood=lik)).to(D)
    return fitted(model, mlls.ExactMarginalLogLikelihood(lik, model), x, y)


@step
def derivatives():
    x, y = data(count=DIMS + 1)
    lik = L.MultitaskGaussianLikelihood(num_tasks=DIMS + 1).to(D)
    model = Exact(x, y, lik, K.ScaleKernel(K.RBFKernelGrad()), means.ConstantMeanGrad(), 1).to(D)
    return fitted(model, mlls.ExactMarginalLogLikelihood(lik, model), x, y)


@step
def hadamard_multitask():
    """Each datum is of one task."""

    class Hadamard(models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module, self.covar_module = means.ConstantMean(), K.RBFKernel()
            self.task_covar_module = K.IndexKernel(num_tasks=2, rank=1)

        def forward(self, x, i):
            covariance = self.covar_module(x).mul(self.task_covar_module(i))
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), covariance)

    x, y = data()
    i = torch.randint(2, (N, 1)).to(D)
    lik = L.GaussianLikelihood().to(D)
    model = Hadamard((x, i), y, lik).to(D)
    return fitted(model, mlls.ExactMarginalLogLikelihood(lik, model), [x, i], y)


@step
def heteroskedastic_list():
    """Two processes at once, by the sum of their likelihoods."""
    x, y = data()
    pairs = []
    for _ in range(2):
        lik = L.GaussianLikelihood().to(D)
        pairs.append(Exact(x, y, lik, K.ScaleKernel(K.RBFKernel())).to(D))
    model = models.IndependentModelList(*pairs)
    lik = L.LikelihoodList(*(each.likelihood for each in pairs))
    mll = mlls.SumMarginalLogLikelihood(lik, model)
    optimizer = torch.optim.Adam(model.parameters(), 0.05)

    def go():
        optimizer.zero_grad()
        loss = -mll(model(*model.train_inputs), model.train_targets)
        loss.backward()
        optimizer.step()

    return go


class Approximate(models.ApproximateGP):
    def __init__(self, strategy, kernel=None, batch=torch.Size()):
        inducing = torch.rand(*batch, 6, DIMS)
        super().__init__(strategy(self, inducing))
        self.mean_module = means.ConstantMean(batch_shape=batch)
        self.covar_module = kernel or K.ScaleKernel(K.RBFKernel(batch_shape=batch), batch_shape=batch)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def strategy(kind=V.VariationalStrategy, distribution=V.CholeskyVariationalDistribution, **more):
    def made(model, inducing):
        return kind(
            model, inducing, distribution(6, batch_shape=inducing.shape[:-2]), learn_inducing_locations=True, **more
        )

    return made


def variational(
    made=None, likelihood=L.GaussianLikelihood, mll=mlls.VariationalELBO, natural=False, settings=(), **about
):
    def make():
        x, y = data(**about)
        model, lik = Approximate(made or strategy()).to(D), likelihood().to(D)
        objective = mll(lik, model, num_data=N)
        if natural:
            optimizers = [
                optim.NGD(model.variational_parameters(), num_data=N, lr=0.1),
                torch.optim.Adam([*model.hyperparameters(), *lik.parameters()], 0.01),
            ]
        else:
            optimizers = [torch.optim.Adam([*model.parameters(), *lik.parameters()], 0.01)]
        lik.train()
        return fitted(model, objective, x, y, *settings, optimizer=optimizers)

    return make


STEPS["variational"] = variational()
STEPS["variational_mean_field"] = variational(strategy(distribution=V.MeanFieldVariationalDistribution))
STEPS["variational_delta"] = variational(
    strategy(distribution=V.DeltaVariationalDistribution), mll=mlls.PredictiveLogLikelihood
)
STEPS["variational_unwhitened"] = variational(strategy(V.UnwhitenedVariationalStrategy))
STEPS["variational_natural"] = variational(strategy(distribution=V.NaturalVariationalDistribution), natural=True)
STEPS["variational_natural_triangular"] = variational(
    strategy(distribution=V.TrilNaturalVariationalDistribution), natural=True
)
STEPS["variational_by_quadrature"] = variational(
    strategy(V.CiqVariationalStrategy, V.NaturalVariationalDistribution), natural=True
)
STEPS["variational_large_batch"] = variational(strategy(V.LargeBatchVariationalStrategy))
STEPS["variational_orthogonal"] = variational(
    lambda model, inducing: V.OrthogonallyDecoupledVariationalStrategy(
        V.VariationalStrategy(model, torch.rand(6, DIMS), V.CholeskyVariationalDistribution(6)),
        inducing,
        V.DeltaVariationalDistribution(6),
    )
)
STEPS["variational_decoupled"] = variational(strategy(V.BatchDecoupledVariationalStrategy))
STEPS["variational_grid"] = variational(
    lambda model, _: V.GridInterpolationVariationalStrategy(
        model, 6, [(0.0, 1.0)] * DIMS, V.CholeskyVariationalDistribution(36)
    )
)
STEPS["variational_neighbours"] = variational(
    lambda model, _: V.NNVariationalStrategy(
        model, torch.rand(N, DIMS), V.MeanFieldVariationalDistribution(N), k=3, training_batch_size=8
    )
)
STEPS["robust"] = variational(mll=mlls.GammaRobustVariationalELBO)
STEPS["predictive"] = variational(mll=mlls.PredictiveLogLikelihood)
STEPS["bernoulli"] = variational(likelihood=L.BernoulliLikelihood, classes=2)
STEPS["student"] = variational(likelihood=L.StudentTLikelihood)
STEPS["laplace"] = variational(likelihood=L.LaplaceLikelihood)
STEPS["poisson"] = variational(likelihood=L.PoissonLikelihood, positive=True)
STEPS["negative_binomial"] = variational(likelihood=L.NegativeBinomialLikelihood, positive=True)


def many(kind, likelihood, about, **more):
    """Several processes of one data set, mixed or not."""

    def make():
        x, y = data(**about)
        batch = torch.Size([3])

        def made(model, inducing):
            inner = V.VariationalStrategy(
                model, inducing, V.CholeskyVariationalDistribution(6, batch_shape=batch), learn_inducing_locations=True
            )
            return kind(inner, num_tasks=3, **more)

        model, lik = Approximate(made, batch=batch).to(D), likelihood().to(D)
        optimizers = [torch.optim.Adam([*model.parameters(), *lik.parameters()], 0.01)]
        return fitted(model, mlls.VariationalELBO(lik, model, num_data=N), x, y, optimizer=optimizers)

    return make


STEPS["multitask_independent"] = many(
    V.IndependentMultitaskVariationalStrategy, lambda: L.MultitaskGaussianLikelihood(num_tasks=3), {"count": 3}
)
STEPS["multitask_mixed"] = many(
    V.LMCVariationalStrategy, lambda: L.MultitaskGaussianLikelihood(num_tasks=3), {"count": 3}, num_latents=3
)
STEPS["softmax"] = many(
    V.IndependentMultitaskVariationalStrategy,
    lambda: L.SoftmaxLikelihood(num_classes=3, mixing_weights=False),
    {"classes": 3},
)


class Layer(models.deep_gps.DeepGPLayer):
    def __init__(self, inputs, outputs):
        batch = torch.Size([] if outputs is None else [outputs])
        inducing = torch.randn(*batch, 6, inputs)
        distribution = V.CholeskyVariationalDistribution(6, batch_shape=batch)
        super().__init__(
            V.VariationalStrategy(self, inducing, distribution, learn_inducing_locations=True), inputs, outputs
        )
        self.mean_module = means.ConstantMean(batch_shape=batch) if outputs is None else means.LinearMean(inputs)
        self.covar_module = K.ScaleKernel(K.RBFKernel(batch_shape=batch, ard_num_dims=inputs), batch_shape=batch)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Deep(models.deep_gps.DeepGP):
    def __init__(self):
        super().__init__()
        self.hidden, self.last, self.likelihood = Layer(DIMS, 2), Layer(2, None), L.GaussianLikelihood()

    def forward(self, x):
        return self.last(self.hidden(x))


def deep(kind, *more):
    def make():
        x, y = data()
        model = Deep().to(D)
        mll = kind(model, *more)
        return fitted(model, mll, x, y, lambda: gpytorch.settings.num_likelihood_samples(3))

    return make


STEPS["deep"] = deep(lambda model: mlls.DeepApproximateMLL(mlls.VariationalELBO(model.likelihood, model, N)))
STEPS["deep_predictive"] = deep(
    lambda model: mlls.DeepApproximateMLL(mlls.PredictiveLogLikelihood(model.likelihood, model, N))
)


@step
def latent():
    """A process of inputs that nobody saw."""
    from gpytorch.models.gplvm.bayesian_gplvm import BayesianGPLVM
    from gpytorch.models.gplvm.latent_variable import VariationalLatentVariable

    batch = torch.Size([4])

    class Latent(BayesianGPLVM):
        def __init__(self):
            distribution = V.CholeskyVariationalDistribution(6, batch_shape=batch)
            made = V.VariationalStrategy(self, torch.randn(4, 6, DIMS), distribution, learn_inducing_locations=True)
            prior = gpytorch.priors.NormalPrior(torch.zeros(N, DIMS, device=D), torch.ones(N, DIMS, device=D))
            super().__init__(VariationalLatentVariable(N, 4, DIMS, torch.randn(N, DIMS), prior), made)
            self.mean_module = means.ZeroMean(ard_num_dims=DIMS)
            self.covar_module = K.ScaleKernel(K.RBFKernel(ard_num_dims=DIMS))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model, lik = Latent().to(D), L.GaussianLikelihood(batch_shape=batch).to(D)
    mll = mlls.VariationalELBO(lik, model, num_data=N)
    y = torch.randn(N, 4).to(D)
    optimizer = torch.optim.Adam([*model.parameters(), *lik.parameters()], 0.01)

    def go():
        batch_of = np.sort(np.random.choice(N, 8, replace=False))
        optimizer.zero_grad()
        sample = model.sample_latent_variable()
        loss = -mll(model(sample[batch_of]), y[batch_of].T).sum()
        loss.backward()
        optimizer.step()

    return go


@step
def deep_kernel():
    """A network before the kernel."""

    class Net(Exact):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood, K.ScaleKernel(K.RBFKernel()))
            self.net = torch.nn.Sequential(torch.nn.Linear(DIMS, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
            self.scale = gpytorch.utils.grid.ScaleToBounds(-1.0, 1.0)

        def forward(self, x):
            return super().forward(self.scale(self.net(x)))

    x, y = data()
    lik = L.GaussianLikelihood().to(D)
    model = Net(x, y, lik).to(D)
    return fitted(model, mlls.ExactMarginalLogLikelihood(lik, model), x, y)
