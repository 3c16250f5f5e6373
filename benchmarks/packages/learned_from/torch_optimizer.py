"""Training steps over torch-optimizer 0.3.0: a small network of convolutions, embeddings and layers, by each of its optimizers."""

import torch_optimizer as O

F = torch.nn.functional


class Network(torch.nn.Module):
    """Parameters of one dimension, of two and of four."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 4)
        self.convolution = torch.nn.Conv2d(1, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, images, tokens):
        seen = self.norm(self.convolution(images)).relu().mean((2, 3))
        return self.head(torch.cat([seen, self.embedding(tokens)], 1))


class Linear(torch.nn.Sequential):
    """No parameter of more dimensions than two."""

    def __init__(self):
        super().__init__(torch.nn.Linear(36, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))

    def forward(self, images, tokens):
        return super().forward(images.flatten(1))


def optimized(optimizer, graph=False, closure=False, network=Network):
    """A step is one of an ordinary loop."""

    def make():
        net = network().to(D)
        stepping = optimizer(net.parameters())

        def forward():
            images, tokens = torch.randn(8, 1, 6, 6, device=D), torch.randint(0, 10, (8,), device=D)
            loss = F.cross_entropy(net(images, tokens), torch.randint(0, 3, (8,), device=D))
            stepping.zero_grad()
            loss.backward(create_graph=graph)
            return loss

        def go():
            if closure:
                return stepping.step(forward)
            forward()
            return stepping.step()

        return go

    return make


for name, optimizer in {
    "a2grad_uniform": lambda params: O.A2GradUni(params, lr=0.01),
    "a2grad_incremental": lambda params: O.A2GradInc(params, lr=0.01),
    "a2grad_exponential": lambda params: O.A2GradExp(params, lr=0.01),
    "accsgd": lambda params: O.AccSGD(params, weight_decay=1e-3),
    "adabelief": lambda params: O.AdaBelief(params, weight_decay=1e-3),
    "adabelief_rectified": lambda params: O.AdaBelief(
        params, rectify=True, weight_decouple=True, amsgrad=True, weight_decay=1e-3
    ),
    "adabound": lambda params: O.AdaBound(params, weight_decay=1e-3, amsbound=True),
    "adamod": lambda params: O.AdaMod(params, weight_decay=1e-3),
    "adamp": lambda params: O.AdamP(params, weight_decay=1e-3, nesterov=True),
    "aggmo": lambda params: O.AggMo(params, weight_decay=1e-3),
    "apollo": lambda params: O.Apollo(params, warmup=3, weight_decay=1e-3),
    "diffgrad": lambda params: O.DiffGrad(params, weight_decay=1e-3),
    "lamb": lambda params: O.Lamb(params, weight_decay=1e-3, debias=True),
    "lars": lambda params: O.LARS(params, momentum=0.9, weight_decay=1e-3, nesterov=True),
    "lookahead": lambda params: O.Lookahead(O.Yogi(params, weight_decay=1e-3), k=1),
    "madgrad": lambda params: O.MADGRAD(params, weight_decay=1e-3),
    "novograd": lambda params: O.NovoGrad(params, weight_decay=1e-3, grad_averaging=True, amsgrad=True),
    "pid": lambda params: O.PID(params, momentum=0.9, weight_decay=1e-3),
    "qhadam": lambda params: O.QHAdam(params, weight_decay=1e-3, decouple_weight_decay=True),
    "qhm": lambda params: O.QHM(params, momentum=0.9, weight_decay=1e-3),
    "radam": lambda params: O.RAdam(params, weight_decay=1e-3),
    "sgdp": lambda params: O.SGDP(params, momentum=0.9, weight_decay=1e-3, nesterov=True),
    "sgdw": lambda params: O.SGDW(params, momentum=0.9, weight_decay=1e-3, nesterov=True),
    "shampoo": lambda params: O.Shampoo(params, momentum=0.9, weight_decay=1e-3),
    "swats": lambda params: O.SWATS(params, lr=0.1, weight_decay=1e-3),
    "swats_nesterov": lambda params: O.SWATS(params, lr=0.1, nesterov=True, amsgrad=True),
    "yogi": lambda params: O.Yogi(params, weight_decay=1e-3),
}.items():
    STEPS[name] = optimized(optimizer)

STEPS["adahessian"] = optimized(lambda params: O.Adahessian(params, weight_decay=1e-3), graph=True)
STEPS["lamb_closure"] = optimized(O.Lamb, closure=True)
STEPS["adafactor"] = optimized(O.Adafactor, network=Linear)
STEPS["adafactor_of_a_rate"] = optimized(
    lambda params: O.Adafactor(params, lr=1e-3, relative_step=False, beta1=0.9, weight_decay=1e-3), network=Linear
)
