"""Training steps over torchdiffeq 0.2.5: its examples (a spiral, flows, digits, series, a bouncing ball), by each of its solvers."""

from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_dense, odeint_event

ROWS, TIMES = 6, 5
TIGHT = {"rtol": 1e-4, "atol": 1e-5}


class Field(nn.Module):
    """Of the readme's spiral: the derivative from the state alone, by a small network of its cubes."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 2))
        for each in self.net:
            if isinstance(each, nn.Linear):
                nn.init.normal_(each.weight, std=0.1)

    def forward(self, t, y):
        return self.net(y**3)


class Timed(nn.Module):
    """The derivative from time, too."""

    def __init__(self, width=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width + 1, 16), nn.Tanh(), nn.Linear(16, width))

    def forward(self, t, y):
        return self.net(torch.cat([y, t.expand(y.shape[0], 1)], 1))


def spiral(solve=odeint, field=Field, times=None, backwards=False, optimizer=torch.optim.RMSprop, **more):
    """A step of `ode_demo.py`: some places of the true path, the path from there, how far apart, the optimizer."""

    def make():
        func = field().to(D)
        true = torch.randn(100, 1, 2).to(D)
        t = torch.linspace(0.0, 2.0, 100).to(D)
        held = optimizer(func.parameters(), lr=1e-3)
        given = {name: value(func) if callable(value) else value for name, value in more.items()}

        def go():
            at = torch.from_numpy(np.random.choice(np.arange(100 - TIMES), ROWS, replace=False))
            start = true.squeeze(1)[at.to(D)]
            seen = t[:TIMES] if times is None else times().to(D)
            seen = seen.flip(0) if backwards else seen
            aim = torch.stack([true.squeeze(1)[(at + i).to(D)] for i in range(len(seen))])
            held.zero_grad()
            path = solve(func, start, seen, **given)
            torch.mean(torch.abs(path - aim)).backward()
            held.step()

        return go

    return make


STEPS["spiral"] = spiral()
STEPS["spiral_adjoint"] = spiral(odeint_adjoint)
STEPS["spiral_backwards"] = spiral(backwards=True)
STEPS["spiral_timed"] = spiral(field=Timed, **TIGHT)
STEPS["spiral_timed_adjoint"] = spiral(odeint_adjoint, Timed, optimizer=torch.optim.Adam, **TIGHT)
STEPS["spiral_of_times_of_the_host"] = spiral(times=lambda: torch.linspace(0.0, 0.3, TIMES))
for name in ("dopri8", "dopri5", "bosh3", "fehlberg2", "adaptive_heun"):
    STEPS[f"adaptive_{name}"] = spiral(method=name, **TIGHT)
for name in ("euler", "midpoint", "heun2", "heun3", "rk4", "explicit_adams", "implicit_adams"):
    STEPS[f"fixed_{name}"] = spiral(method=name)
STEPS["fixed_of_step"] = spiral(method="rk4", options={"step_size": 0.02})
STEPS["fixed_of_step_cubic"] = spiral(method="midpoint", options={"step_size": 0.013, "interp": "cubic"})
STEPS["fixed_perturbed"] = spiral(method="euler", options={"step_size": 0.02, "perturb": True})
STEPS["fixed_of_grid"] = spiral(
    method="rk4",
    options={"grid_constructor": lambda func, y0, t: torch.linspace(0.0, 1.0, 9).to(t) * (t[-1] - t[0]) + t[0]},
)
STEPS["adams_adjoint"] = spiral(odeint_adjoint, method="implicit_adams", options={"step_size": 0.02, "max_order": 4})
STEPS["adaptive_of_first_step"] = spiral(method="dopri5", options={"first_step": 0.01, "max_num_steps": 500}, **TIGHT)
STEPS["adaptive_with_jumps"] = spiral(
    method="dopri5", options={"jump_t": torch.tensor([0.03, 0.05]), "step_t": torch.tensor([0.02])}, **TIGHT
)
STEPS["adaptive_in_double"] = spiral(method="dopri5", options={"dtype": torch.float64}, **TIGHT)
STEPS["adaptive_bounded_steps"] = spiral(method="dopri5", options={"min_step": 1e-4, "max_step": 0.1}, **TIGHT)
STEPS["adjoint_rk4"] = spiral(odeint_adjoint, method="rk4")
STEPS["adjoint_of_another_method"] = spiral(odeint_adjoint, method="dopri5", adjoint_method="rk4", **TIGHT)
STEPS["adjoint_seminorm"] = spiral(odeint_adjoint, method="dopri5", adjoint_options={"norm": "seminorm"}, **TIGHT)
STEPS["adjoint_tolerances"] = spiral(
    odeint_adjoint, adjoint_rtol=1e-3, adjoint_atol=1e-3, adjoint_params=lambda func: tuple(func.parameters()), **TIGHT
)


class Told(Field):
    """A field that is told of each step that a solver takes, and counts them."""

    def __init__(self):
        super().__init__()
        self.steps = 0

    def callback_step(self, t0, y0, dt):
        self.steps += 1

    def callback_accept_step(self, t0, y0, dt):
        self.steps += 1


STEPS["adaptive_told_of_steps"] = spiral(field=Told, method="dopri5", **TIGHT)
STEPS["fixed_told_of_steps"] = spiral(field=Told, method="rk4")


@step
def spiral_of_learned_times():
    """The times are learned, too."""
    func, start = Field().to(D), torch.randn(ROWS, 2).to(D)
    gaps = nn.Parameter(torch.full((TIMES,), -2.0, device=D))
    optimizer = torch.optim.Adam([*func.parameters(), gaps], 1e-3)

    def go():
        optimizer.zero_grad()
        odeint(func, start, torch.cat([gaps.new_zeros(1), gaps.exp().cumsum(0)]), **TIGHT)[-1].pow(2).mean().backward()
        optimizer.step()

    return go


@step
def spiral_of_learned_times_adjoint():
    func, start = Field().to(D), torch.randn(ROWS, 2).to(D)
    end = nn.Parameter(torch.ones(1, device=D))
    optimizer = torch.optim.Adam([*func.parameters(), end], 1e-3)

    def go():
        optimizer.zero_grad()
        path = odeint_adjoint(func, start, torch.cat([end.new_zeros(1), end]), **TIGHT)
        path[-1].pow(2).mean().backward()
        optimizer.step()

    return go


@step
def spiral_dense():
    """The path as a function, asked at times of one's own."""
    func, start = Field().to(D), torch.randn(ROWS, 2).to(D)
    aim = torch.randn(3, ROWS, 2).to(D)

    def loss(net):
        at = odeint_dense(
            net, start, torch.tensor(0.0, device=D), torch.tensor(1.0, device=D), method="dopri5", **TIGHT
        )
        return sum((at(torch.tensor(t)) - each).abs().mean() for t, each in zip((0.2, 0.5, 0.9), aim, strict=True))

    return train(func, loss)


class Flow(nn.Module):
    """Of `cnf.py`: planar flows whose weights a network makes of time, and how they change a volume."""

    def __init__(self, width=8):
        super().__init__()
        self.net, self.width = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 7 * width)), width

    def forward(self, t, states):
        z = states[0]
        with torch.set_grad_enabled(True):
            z.requires_grad_(True)
            held = self.net(t.reshape(1, 1)).reshape(-1)
            w, u, gate, b = torch.split(held, [2 * self.width] * 3 + [self.width])
            w = w.reshape(self.width, 2, 1)
            u = u.reshape(self.width, 1, 2) * torch.sigmoid(gate.reshape(self.width, 1, 2))
            dz = torch.matmul(
                torch.tanh(torch.matmul(z.unsqueeze(0).repeat(self.width, 1, 1), w) + b.reshape(-1, 1, 1)), u
            ).mean(0)
            trace = sum(torch.autograd.grad(dz[:, i].sum(), z, create_graph=True)[0][:, i] for i in range(2))
        return dz, -trace.view(-1, 1)


def flow(solve=odeint_adjoint, **more):
    """A step of `cnf.py`: how likely points are, from the last time back to the first."""

    def make():
        func = Flow().to(D)
        base = torch.distributions.MultivariateNormal(torch.zeros(2).to(D), 0.1 * torch.eye(2).to(D))
        optimizer = torch.optim.Adam(func.parameters(), 1e-3)

        def go():
            optimizer.zero_grad()
            points, change = torch.randn(ROWS, 2).to(D), torch.zeros(ROWS, 1, device=D)
            z, logs = solve(func, (points, change), torch.tensor([1.0, 0.0], device=D), **more)
            (-(base.log_prob(z[-1]) - logs[-1].view(-1)).mean()).backward()
            optimizer.step()

        return go

    return make


STEPS["flow_adjoint"] = flow(atol=1e-4, rtol=1e-4, method="dopri5")
STEPS["flow"] = flow(odeint, atol=1e-4, rtol=1e-4)
STEPS["flow_rk4"] = flow(method="rk4", options={"step_size": 0.25})
STEPS["flow_of_tolerances_each"] = flow(odeint, rtol=1e-3, atol=(1e-3, 1e-4))


class Block(nn.Module):
    """Of `odenet_mnist.py`: a convolution that knows the time, integrated from 0 to 1."""

    def __init__(self, solve, **more):
        super().__init__()
        self.solve, self.more = solve, more
        self.norm, self.conv = nn.GroupNorm(2, 4), nn.Conv2d(5, 4, 3, padding=1)
        self.register_buffer("times", torch.tensor([0.0, 1.0]))

    def derivative(self, t, x):
        return self.conv(torch.cat([torch.ones_like(x[:, :1]) * t, self.norm(x).relu()], 1))

    def forward(self, x):
        given = {"adjoint_params": tuple(self.parameters())} if self.solve is odeint_adjoint else {}
        return self.solve(self.derivative, x, self.times.type_as(x), rtol=1e-3, atol=1e-3, **given, **self.more)[1]


def digits(solve=odeint_adjoint, **more):
    def make():
        net = nn.Sequential(
            nn.Conv2d(1, 4, 3, 2), Block(solve, **more), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10)
        ).to(D)
        optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)

        def go():
            x, y = torch.rand(ROWS, 1, 12, 12).to(D), torch.randint(0, 10, (ROWS,)).to(D)
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()

        return go

    return make


STEPS["digits_adjoint"] = digits()
STEPS["digits"] = digits(odeint)
STEPS["digits_euler"] = digits(odeint, method="euler")


@step
def series():
    """A step of `latent_ode.py`: a recurrent net reads a series backwards, its state is integrated, what it shows is decoded."""
    read, field, show = nn.GRUCell(2, 8).to(D), Timed(4).to(D), nn.Linear(4, 2).to(D)
    held = [*read.parameters(), *field.parameters(), *show.parameters()]
    optimizer, seen = torch.optim.Adam(held, 1e-2), torch.randn(ROWS, TIMES, 2).to(D)
    t = torch.linspace(0.0, 1.0, TIMES).to(D)

    def go():
        optimizer.zero_grad()
        state = torch.zeros(ROWS, 8, device=D)
        for i in reversed(range(TIMES)):
            state = read(seen[:, i], state)
        mean, logvar = state.chunk(2, 1)
        start = torch.randn(mean.size()).to(D) * torch.exp(0.5 * logvar) + mean
        shown = show(odeint(field, start, t, **TIGHT).permute(1, 0, 2))
        loss = (shown - seen).pow(2).mean() - 0.5 * (1 + logvar - mean**2 - logvar.exp()).mean()
        loss.backward()
        optimizer.step()

    return go


class Ball(nn.Module):
    """Of `bouncing_ball.py`: falls, and bounces off the ground; gravity and what is left of the speed are learned."""

    def __init__(self, solve):
        super().__init__()
        self.gravity, self.kept = nn.Parameter(torch.tensor([9.8])), nn.Parameter(torch.tensor([0.2]))
        self.height, self.speed = nn.Parameter(torch.tensor([2.0])), nn.Parameter(torch.tensor([0.0]))
        self.t0, self.solve = nn.Parameter(torch.tensor([0.0])), solve

    def forward(self, t, state):
        height, speed, _ = state
        return speed, -self.gravity, torch.zeros_like(speed)

    def ground(self, t, state):
        return state[0]

    def bounced(self, bounces):
        t, state, times = self.t0, (self.height, self.speed, self.kept), []
        for _ in range(bounces):
            t, path = odeint_event(
                self,
                state,
                t,
                event_fn=self.ground,
                reverse_time=False,
                atol=1e-6,
                rtol=1e-6,
                odeint_interface=self.solve,
            )
            height, speed, kept = (each[-1] for each in path)
            state = (height + 1e-6, -speed * (1 - kept), kept)
            times.append(t)
        return times


STEPS["ball"] = lambda: train(Ball(odeint), lambda net: net.bounced(1)[-1].pow(2).mean())
STEPS["ball_bouncing"] = lambda: train(Ball(odeint), lambda net: (net.bounced(2)[-1] - 2.0).pow(2).mean())
STEPS["ball_adjoint"] = lambda: train(Ball(odeint_adjoint), lambda net: net.bounced(1)[-1].pow(2).mean())


@step
def event_of_fixed_steps():
    """The time when the first state is gone, by steps of one length."""
    field = Field()
    start = torch.tensor([1.0, 2.0]).to(D)

    def loss(net):
        t, path = odeint_event(
            lambda t, y: net(t, y) - 1.0, start, torch.tensor(0.0, device=D), event_fn=lambda t, y: y[0],
            method="rk4", options={"step_size": 0.05}, atol=1e-5, rtol=1e-5,
        )  # fmt: skip
        return t + path[-1].pow(2).sum()

    return train(field, loss)
