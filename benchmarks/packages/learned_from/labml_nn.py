"""Training steps over labml.ai's annotated networks, labml-nn 0.5.1: transformers, recurrent networks, GANs, diffusion, agents, optimizers."""

absent("torchtext")

from labml import tracker

tracker.debug = lambda *_: None  # the labml that it was written beside has it

from labml_nn import optimizers as O
from labml_nn.activations.fta import FTA
from labml_nn.adaptive_computation.ponder_net import ParityPonderGRU, ReconstructionLoss, RegularizationLoss
from labml_nn.capsule_networks import MarginLoss, Router, Squash
from labml_nn.diffusion.ddpm import DenoiseDiffusion
from labml_nn.diffusion.ddpm.unet import UNet
from labml_nn.gan.original import DiscriminatorLogitsLoss, GeneratorLogitsLoss
from labml_nn.gan.stylegan import Discriminator, Generator, GradientPenalty, MappingNetwork, PathLengthPenalty
from labml_nn.gan.wasserstein import DiscriminatorLoss, GeneratorLoss
from labml_nn.gan.wasserstein.gradient_penalty import GradientPenalty as WassersteinPenalty
from labml_nn.graphs.gat import GraphAttentionLayer
from labml_nn.graphs.gatv2 import GraphAttentionV2Layer
from labml_nn.hypernetworks.hyper_lstm import HyperLSTM
from labml_nn.lstm import LSTM
from labml_nn.normalization.batch_channel_norm import BatchChannelNorm
from labml_nn.normalization.batch_norm import BatchNorm
from labml_nn.normalization.group_norm import GroupNorm
from labml_nn.normalization.weight_standardization.conv2d import Conv2d
from labml_nn.optimizers.ada_belief import AdaBelief
from labml_nn.optimizers.adam import Adam
from labml_nn.optimizers.amsgrad import AMSGrad
from labml_nn.optimizers.noam import Noam
from labml_nn.optimizers.radam import RAdam
from labml_nn.recurrent_highway_networks import RHN
from labml_nn.rl.dqn import QFuncLoss
from labml_nn.rl.dqn.replay_buffer import ReplayBuffer
from labml_nn.rl.ppo import ClippedPPOLoss, ClippedValueFunctionLoss
from labml_nn.rl.ppo.gae import GAE
from labml_nn.sketch_rnn import DecoderRNN, EncoderRNN, KLDivLoss
from labml_nn.sketch_rnn import ReconstructionLoss as SketchLoss
from labml_nn.transformers import Encoder, MultiHeadAttention, TransformerLayer
from labml_nn.transformers.alibi import AlibiMultiHeadAttention
from labml_nn.transformers.aft import AFTLocal
from labml_nn.transformers.compressive import (
    AttentionReconstructionLoss,
    CompressiveTransformer,
    CompressiveTransformerLayer,
    Conv1dCompression,
)
from labml_nn.transformers.fast_weights import DPFP, FastWeightsAttention, FastWeightsAttentionTransformer
from labml_nn.transformers.fast_weights import FastWeightsAttentionTransformerLayer
from labml_nn.transformers.feedback import (
    FeedbackAttention,
    FeedbackTransformer,
    FeedbackTransformerKV,
    FeedbackTransformerLayer,
)
from labml_nn.transformers.feed_forward import FeedForward
from labml_nn.transformers.fnet import FNetMix
from labml_nn.transformers.hour_glass import HourGlass
from labml_nn.transformers.label_smoothing_loss import LabelSmoothingLoss
from labml_nn.transformers.mlm import MLM
from labml_nn.transformers.primer_ez import MultiDConvHeadAttention
from labml_nn.transformers.retro.model import NearestNeighborEncoder, RetroModel
from labml_nn.transformers.rope import RotaryPEMultiHeadAttention
from labml_nn.transformers.switch import SwitchFeedForward, SwitchTransformer, SwitchTransformerLayer
from labml_nn.transformers.utils import subsequent_mask
from labml_nn.transformers.vit import (
    ClassificationHead,
    LearnedPositionalEmbeddings,
    PatchEmbeddings,
    VisionTransformer,
)
from labml_nn.transformers.xl import TransformerXL, TransformerXLLayer
from labml_nn.transformers.xl.relative_mha import RelativeMultiHeadAttention
from labml_nn.uncertainty.evidence import KLDivergenceLoss, SquaredErrorBayesRisk

F = torch.nn.functional
WORDS, WIDTH, LENGTH, ROWS = 20, 16, 8, 4


def text(length=LENGTH):
    return torch.randint(2, WORDS, (length, ROWS), device=D)


class Language(torch.nn.Module):
    """Embeds words, runs a body over them, and foretells the next ones."""

    def __init__(self, body):
        super().__init__()
        self.embed, self.body, self.head = torch.nn.Embedding(WORDS, WIDTH), body, torch.nn.Linear(WIDTH, WORDS)


def spoken(body, run, loss=None):
    """A step: `run` the body of the network over embedded words."""

    def make():
        net = Language(body())
        cross = loss() if loss else torch.nn.CrossEntropyLoss()

        def value(model):
            words = text()
            out = run(model.body, model.embed(words))
            out, more = out if isinstance(out, tuple) else (out, 0)
            return cross(model.head(out).flatten(0, 1), words.flatten()) + more

        return train(net, value)

    return make


def forward():
    return FeedForward(WIDTH, 32, 0.1)


def attended(attention):
    return lambda: Encoder(
        TransformerLayer(d_model=WIDTH, self_attn=attention(), feed_forward=forward(), dropout_prob=0.1), 2
    )


def masked(body, x):
    return body(x, subsequent_mask(len(x)).to(D))


STEPS["attention"] = spoken(attended(lambda: MultiHeadAttention(2, WIDTH)), masked)
STEPS["attention_rotary"] = spoken(attended(lambda: RotaryPEMultiHeadAttention(2, WIDTH)), masked)
STEPS["attention_alibi"] = spoken(attended(lambda: AlibiMultiHeadAttention(2, WIDTH)), masked)
STEPS["attention_free"] = spoken(attended(lambda: AFTLocal(WIDTH, LENGTH, 3)), masked)
STEPS["attention_convolved"] = spoken(attended(lambda: MultiDConvHeadAttention(2, WIDTH)), masked)
STEPS["fourier"] = spoken(attended(FNetMix), lambda body, x: body(x, None))
STEPS["hour_glass"] = spoken(lambda: HourGlass(2, WIDTH, 0.1, 32, [2]), lambda body, x: body(x))


def experts(**more):
    def body():
        switch = SwitchFeedForward(n_experts=3, expert=forward(), d_model=WIDTH, capacity_factor=1.2, **more)
        layer = SwitchTransformerLayer(
            d_model=WIDTH, attn=MultiHeadAttention(2, WIDTH), feed_forward=switch, dropout_prob=0.1
        )
        return SwitchTransformer(layer, 2)

    def run(body, x):
        x, counts, probabilities, dropped, _ = masked(body, x)
        total = counts.sum(dim=-1, keepdims=True)
        balance = 3 * ((counts / total) * (probabilities / total)).sum()
        return x, 0.01 * balance

    return spoken(body, run)


STEPS["switched"] = experts(drop_tokens=False, is_scale_prob=True)
STEPS["switched_dropping"] = experts(drop_tokens=True, is_scale_prob=False)


@step
def extra_long():
    """The memory of each layer goes on from step to step."""
    layer = TransformerXLLayer(
        d_model=WIDTH, self_attn=RelativeMultiHeadAttention(2, WIDTH, 0.1), feed_forward=forward(), dropout_prob=0.1
    )
    memory = {"held": []}

    def run(body, x):
        mask = subsequent_mask(len(x)).to(D)
        if memory["held"]:
            mask = torch.cat([torch.ones(len(x), len(memory["held"][0]), 1, device=D, dtype=mask.dtype), mask], dim=1)
        x, found = body(x, memory["held"], mask)
        memory["held"] = [each.detach() for each in found]
        return x

    return spoken(lambda: TransformerXL(layer, 2), run)()


@step
def compressive():
    """Old memories are compressed, and the compression is trained to keep what attention sees."""
    layer = CompressiveTransformerLayer(
        d_model=WIDTH,
        self_attn=RelativeMultiHeadAttention(2, WIDTH, 0.1),
        feed_forward=forward(),
        dropout_prob=0.1,
        compress=Conv1dCompression(2, WIDTH),
    )
    net = CompressiveTransformer(layer, 2).to(D)
    keeps = AttentionReconstructionLoss(net.layers)
    memory = [torch.randn(4, ROWS, WIDTH, device=D) for _ in range(2)]

    def run(body, x):
        mask = torch.ones(len(x), len(x) + 4, 1, device=D, dtype=torch.bool)
        x, found = body(x, memory, [], mask)
        return x, 0.1 * keeps([each.detach() for each in found], memory)

    return spoken(lambda: net, run)()


def feedback(kind, **more):
    def body():
        attention = FeedbackAttention(2, WIDTH, is_kv_precomputed=bool(more))
        return kind(
            FeedbackTransformerLayer(d_model=WIDTH, attn=attention, feed_forward=forward(), dropout_prob=0.1), 2, **more
        )

    return spoken(body, lambda body, x: body(x))


STEPS["feedback"] = feedback(FeedbackTransformer)
STEPS["feedback_of_keys"] = feedback(FeedbackTransformerKV, d_model=WIDTH, heads=2)
STEPS["fast_weights"] = spoken(
    lambda: FastWeightsAttentionTransformer(
        FastWeightsAttentionTransformerLayer(
            d_model=WIDTH, attn=FastWeightsAttention(2, WIDTH, 0.1, DPFP()), feed_forward=forward(), dropout_prob=0.1
        ),
        2,
    ),
    lambda body, x: body(x),
)
STEPS["lstm"] = spoken(lambda: LSTM(WIDTH, WIDTH, 2), lambda body, x: body(x)[0])
STEPS["hyper_lstm"] = spoken(lambda: HyperLSTM(WIDTH, WIDTH, 8, 4, 1), lambda body, x: body(x)[0])
STEPS["highway"] = spoken(lambda: RHN(WIDTH, WIDTH, 2, 1), lambda body, x: body(x)[0])


@step
def words_hidden():
    """Some words are hidden, and foretold."""
    hide = MLM(padding_token=0, mask_token=1, no_mask_tokens=[], n_tokens=WORDS)
    net = Language(attended(lambda: MultiHeadAttention(2, WIDTH))())

    def value(model):
        x, y = hide(text())
        return F.cross_entropy(model.head(model.body(model.embed(x), None)).flatten(0, 1), y.flatten(), ignore_index=0)

    return train(net, value)


@step
def smoothed():
    """The labels are smoothed, but for padding."""
    cross = LabelSmoothingLoss(WORDS, 0, 0.1)
    net = Language(attended(lambda: MultiHeadAttention(2, WIDTH))())

    def value(model):
        words = text()
        return cross(model.head(masked(model.body, model.embed(words))).flatten(0, 1).log_softmax(-1), words.flatten())

    return train(net, value)


@step
def retrieved():
    """Neighbours of each chunk are read beside it."""
    reads = NearestNeighborEncoder(4, 1, {0}, WIDTH, 2, 8, 32)
    net = RetroModel(WORDS, WIDTH, 2, {1}, 4, 2, 8, 32, encoder=reads)

    def value(model):
        words = text().T
        near = torch.randint(0, WORDS, (ROWS, LENGTH // 4, 2, 8), device=D)
        return F.cross_entropy(model(words, near).flatten(0, 1), words.flatten())

    return train(net, value)


@step
def vision():
    layer = TransformerLayer(
        d_model=WIDTH, self_attn=MultiHeadAttention(2, WIDTH), feed_forward=forward(), dropout_prob=0.1
    )
    net = VisionTransformer(
        layer, 2, PatchEmbeddings(WIDTH, 4, 3), LearnedPositionalEmbeddings(WIDTH), ClassificationHead(WIDTH, 16, 5)
    )
    return train(
        net,
        lambda model: F.cross_entropy(
            model(torch.randn(ROWS, 3, 16, 16, device=D)), torch.randint(0, 5, (ROWS,), device=D)
        ),
    )


@step
def pondering():
    """A network that halts when it will."""
    rebuild = ReconstructionLoss(torch.nn.BCEWithLogitsLoss(reduction="none"))
    regular = RegularizationLoss(0.2, 5).to(D)

    def value(model):
        x = torch.randint(-1, 2, (ROWS, 6), device=D).float()
        p, y_hat, _, _ = model(x)
        return rebuild(p, y_hat, (x.sum(-1) > 0).float()) + 0.01 * regular(p)

    return train(ParityPonderGRU(6, 8, 5), value)


@step
def capsules():
    squash, margin = Squash(), MarginLoss(n_labels=5).to(D)
    net = torch.nn.ModuleList([torch.nn.Conv2d(1, 16, 3, stride=2), Router(72, 5, 8, 8, 3)])

    def value(model):
        seen = model[0](torch.randn(ROWS, 1, 13, 13, device=D)).view(ROWS, 2, 8, 36)
        found = model[1](squash(seen.permute(0, 1, 3, 2).reshape(ROWS, -1, 8)))
        return margin(found, torch.randint(0, 5, (ROWS,), device=D))

    return train(net, value)


@step
def denoised():
    net = UNet(1, 32, (1, 2), (False, True), 1).to(D)
    diffusion = DenoiseDiffusion(net, 20, torch.device(D))
    return train(net, lambda _: diffusion.loss(torch.randn(2, 1, 8, 8, device=D)))


@step
def wasserstein():
    """The discriminator, with its gradient held near one, and then the generator."""
    made = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8)).to(D)
    judged = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LeakyReLU(), torch.nn.Linear(16, 1)).to(D)
    penalty, of_judge, of_maker = WassersteinPenalty(), DiscriminatorLoss(), GeneratorLoss()
    judge = torch.optim.Adam(judged.parameters(), 1e-3)
    maker = torch.optim.Adam(made.parameters(), 1e-3)

    def go():
        real = torch.randn(ROWS, 8, device=D).requires_grad_()
        seen = judged(real)
        a, b = of_judge(seen, judged(made(torch.randn(ROWS, 4, device=D)).detach()))
        judge.zero_grad()
        (a + b + 0.2 * penalty(real, seen)).backward()
        judge.step()
        maker.zero_grad()
        of_maker(judged(made(torch.randn(ROWS, 4, device=D)))).backward()
        maker.step()

    return go


@step
def adversarial():
    """The same, by cross entropy, with smoothed labels."""
    made = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8)).to(D)
    judged = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LeakyReLU(), torch.nn.Linear(16, 1)).to(D)
    of_judge, of_maker = DiscriminatorLogitsLoss(0.1).to(D), GeneratorLogitsLoss(0.1).to(D)
    judge = torch.optim.Adam(judged.parameters(), 1e-3)
    maker = torch.optim.Adam(made.parameters(), 1e-3)

    def go():
        fake = made(torch.randn(ROWS, 4, device=D))
        judge.zero_grad()
        sum(of_judge(judged(torch.randn(ROWS, 8, device=D)), judged(fake.detach()))).backward()
        judge.step()
        maker.zero_grad()
        of_maker(judged(fake)).backward()
        maker.step()

    return go


@step
def styled():
    """StyleGAN 2: styles from noise, with both of its penalties."""
    maps, made = MappingNetwork(8, 2).to(D), Generator(3, 8, 4, 8).to(D)
    judged = Discriminator(3, 4, 8).to(D)
    gradient, path = GradientPenalty(), PathLengthPenalty(0.99).to(D)
    judge = torch.optim.Adam(judged.parameters(), 1e-3)
    maker = torch.optim.Adam([*maps.parameters(), *made.parameters()], 1e-3)

    def generate():
        w = maps(torch.randn(ROWS, 8, device=D))[None].expand(made.n_blocks, -1, -1)
        size, noise = 4, []
        for i in range(made.n_blocks):
            noise.append(
                (
                    None if i == 0 else torch.randn(ROWS, 1, size, size, device=D),
                    torch.randn(ROWS, 1, size, size, device=D),
                )
            )
            size *= 2
        return made(w, noise), w

    def go():
        real = torch.randn(ROWS, 3, 8, 8, device=D).requires_grad_()
        seen = judged(real)
        judge.zero_grad()
        (F.relu(1 - seen).mean() + F.relu(1 + judged(generate()[0].detach())).mean() + gradient(real, seen)).backward()
        judge.step()
        fake, w = generate()
        maker.zero_grad()
        length = path(w, fake)
        loss = -judged(fake).mean()
        if not torch.isnan(length):
            loss = loss + length
        loss.backward()
        maker.step()

    return go


def attending(kind):
    def make():
        net = torch.nn.Sequential(kind(6, 8, 2, dropout=0.1), torch.nn.ELU(), torch.nn.Linear(8, 3))

        def value(model):
            near = (torch.rand(10, 10, 1, device=D) > 0.6) | torch.eye(10, device=D).bool()[..., None]
            out = model[2](model[1](model[0](torch.randn(10, 6, device=D), near)))
            return F.cross_entropy(out, torch.randint(0, 3, (10,), device=D))

        return train(net, value)

    return make


STEPS["graph_attention"] = attending(GraphAttentionLayer)
STEPS["graph_attention_2"] = attending(GraphAttentionV2Layer)


@step
def sketched():
    """Strokes are read and drawn again, as mixtures."""
    net = torch.nn.ModuleList([EncoderRNN(8, 16), DecoderRNN(8, 16, 3)])
    apart, rebuild = KLDivLoss(), SketchLoss()

    def value(model):
        strokes = torch.randn(10, ROWS, 5, device=D)
        strokes[..., 2:] = F.one_hot(torch.randint(0, 3, (10, ROWS), device=D), 3)
        z, mean, spread = model[0](strokes)
        inputs = torch.cat([strokes[:-1], z[None].expand(9, -1, -1)], 2)
        dist, pen, _ = model[1](inputs, z, None)
        return rebuild(torch.ones(9, ROWS, device=D), strokes[1:], dist, pen) + 0.5 * apart(spread, mean)

    return train(net, value)


@step
def evidence():
    risk, apart = SquaredErrorBayesRisk(), KLDivergenceLoss()
    net = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU())

    def value(model):
        target = torch.eye(5, device=D)[torch.randint(0, 5, (ROWS,), device=D)]
        found = model(torch.randn(ROWS, 6, device=D))
        return risk(found, target) + 0.1 * apart(found, target)

    return train(net, value)


@step
def q_learned():
    """What is drawn from the memory by priority, and priorities that are written back."""
    memory = ReplayBuffer(32, 0.6)
    for _ in range(64):
        memory.add(
            np.random.rand(4, 84, 84).astype(np.uint8), 1, 0.5, np.random.rand(4, 84, 84).astype(np.uint8), False
        )
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4 * 84 * 84, 3)).to(D)
    error = QFuncLoss(0.99)
    optimizer = torch.optim.Adam(net.parameters(), 1e-4)

    def go():
        drawn = memory.sample(8, 0.4)
        seen = torch.tensor(drawn["obs"], dtype=torch.float32, device=D) / 255
        after = torch.tensor(drawn["next_obs"], dtype=torch.float32, device=D) / 255
        with torch.no_grad():
            double, target = net(after), net(after)
        td, loss = error(
            net(seen),
            torch.tensor(drawn["action"], device=D),
            double,
            target,
            torch.tensor(drawn["done"], device=D).float(),
            torch.tensor(drawn["reward"], device=D),
            torch.tensor(drawn["weights"], device=D),
        )
        memory.update_priorities(drawn["indexes"], np.abs(td.detach().cpu().numpy()) + 1e-6)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return go


@step
def proximal():
    """Advantages of what was played, and a batch of them."""
    gains, of_policy, of_value = GAE(4, 6, 0.99, 0.95), ClippedPPOLoss(), ClippedValueFunctionLoss()
    net = torch.nn.Linear(5, 4)

    def value(model):
        gained = gains(
            np.zeros((4, 6), bool), np.random.rand(4, 6).astype("float32"), np.random.rand(4, 7).astype("float32")
        )
        advantage = torch.tensor(gained.flatten(), device=D, dtype=torch.float32)
        out = model(torch.randn(24, 5, device=D))
        policy = torch.distributions.Categorical(logits=out[:, :3])
        log_pi = policy.log_prob(policy.sample())
        old = log_pi.detach() + 0.01
        return -of_policy(log_pi, old, advantage, 0.1) + 0.5 * of_value(out[:, 3], out[:, 3].detach(), advantage, 0.1)

    return train(net, value)


@step
def normalized():
    """A convolution of standardized weights, behind each of the norms; an activation that is sparse."""
    net = torch.nn.Sequential(
        Conv2d(3, 8, 3),
        BatchNorm(8),
        FTA(-2.0, 2.0, 1.0, 0.5),
        torch.nn.Flatten(3),
        torch.nn.Flatten(),
        torch.nn.LazyLinear(5),
    ).to(D)
    net(torch.randn(2, 3, 8, 8, device=D))
    return train(
        net,
        lambda model: F.cross_entropy(
            model(torch.randn(ROWS, 3, 8, 8, device=D)), torch.randint(0, 5, (ROWS,), device=D)
        ),
    )


@step
def normalized_by_channels():
    net = torch.nn.Sequential(
        Conv2d(3, 8, 3),
        BatchChannelNorm(8, 2),
        torch.nn.ReLU(),
        Conv2d(8, 8, 3),
        GroupNorm(2, 8),
        torch.nn.AdaptiveAvgPool2d(1),
    )
    return train(net, lambda model: model(torch.randn(ROWS, 3, 8, 8, device=D)).pow(2).mean())


def optimized(optimizer):
    def make():
        net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).to(D)
        stepping = optimizer(net.parameters())

        def go():
            stepping.zero_grad()
            F.cross_entropy(net(torch.randn(ROWS, 6, device=D)), torch.randint(0, 3, (ROWS,), device=D)).backward()
            stepping.step()

        return go

    return make


STEPS["adam"] = optimized(lambda params: Adam(params, weight_decay=O.WeightDecay(1e-2)))
STEPS["adam_plain"] = optimized(lambda params: Adam(params, optimized_update=False))
STEPS["adabelief"] = optimized(AdaBelief)
STEPS["amsgrad"] = optimized(AMSGrad)
STEPS["noam"] = optimized(lambda params: Noam(params, warmup=4, d_model=16))
STEPS["radam"] = optimized(RAdam)
