"""Training steps over OSRL 0.1.0: each of its trainers learns of a batch of recorded transitions or stretches of episodes."""

absent("fsrl dsrl pyrallis easy_runner wandb oapackage h5py")

from osrl.algorithms.bc import BC, BCTrainer
from osrl.algorithms.bcql import BCQL, BCQLTrainer
from osrl.algorithms.bearl import BEARL, BEARLTrainer
from osrl.algorithms.cdt import CDT, CDTTrainer
from osrl.algorithms.coptidice import COptiDICE, COptiDICETrainer
from osrl.algorithms.cpq import CPQ, CPQTrainer

OBS, ACT, BATCH, LENGTH = 5, 2, 8, 6


def transitions():
    """A batch as its data set gives it, and as its examples put it on the device."""
    while True:
        rows = [torch.randn(BATCH, OBS), torch.randn(BATCH, OBS), torch.rand(BATCH, ACT) * 2 - 1]
        ends = [torch.rand(BATCH), (torch.rand(BATCH) > 0.5).float(), (torch.rand(BATCH) > 0.9).float()]
        yield [each.to(D) for each in (*rows, *ends)]


def learned(model, trainer, settings=None, **more):
    """A step is a batch."""

    def make():
        net = model(OBS, ACT, 1.0, a_hidden_sizes=[8], device=D, **(settings or {}))
        runs, batches = trainer(net.to(D), None, actor_lr=1e-3, device=D, **more), transitions()

        def go():
            observations, after, actions, rewards, costs, done = next(batches)
            runs.train_one_step(observations, after, actions, rewards, costs, done)

        return go

    return make


sizes = {"c_hidden_sizes": [8], "vae_hidden_sizes": 8, "sample_action_num": 3}
two = {"num_q": 2, "num_qc": 2}
STEPS["bcql"] = learned(BCQL, BCQLTrainer, sizes)
STEPS["bcql_of_two"] = learned(BCQL, BCQLTrainer, {**sizes, **two}, critic_lr=1e-3, vae_lr=1e-3)
STEPS["bearl"] = learned(BEARL, BEARLTrainer, {**sizes, "start_update_policy_step": 0})
STEPS["bearl_at_first"] = learned(BEARL, BEARLTrainer, sizes)
STEPS["bearl_laplacian"] = learned(
    BEARL,
    BEARLTrainer,
    {**sizes, **two, "kernel": "laplacian", "start_update_policy_step": 0, "num_samples_mmd_match": 4},
)
STEPS["cpq"] = learned(CPQ, CPQTrainer, sizes)
STEPS["cpq_of_two"] = learned(CPQ, CPQTrainer, {**sizes, **two}, alpha_lr=1e-3)


def cloned(mode):
    def make():
        wide = OBS + 1 if mode == "multi-task" else OBS
        net = BC(wide, ACT, 1.0, a_hidden_sizes=[8], device=D).to(D)
        runs = BCTrainer(net, None, actor_lr=1e-3, bc_mode=mode, device=D)

        def go():
            observations, actions = torch.randn(BATCH, wide).to(D), torch.rand(BATCH, ACT).to(D)
            runs.train_one_step(observations, actions)

        return go

    return make


STEPS["cloned"] = cloned("all")
STEPS["cloned_for_tasks"] = cloned("multi-task")


def estimated(f_type, **more):
    def make():
        net = COptiDICE(
            OBS,
            ACT,
            1.0,
            f_type,
            0.1,
            np.ones(OBS, np.float32),
            np.ones(ACT, np.float32),
            a_hidden_sizes=[8],
            c_hidden_sizes=[8],
            device=D,
            **more,
        ).to(D)
        runs, batches = COptiDICETrainer(net, None, device=D), transitions()

        def go():
            first = (torch.rand(BATCH) > 0.8).float().to(D)
            runs.train_one_step([*next(batches), first])

        return go

    return make


STEPS["coptidice"] = estimated("softchi")
STEPS["coptidice_kl"] = estimated("kl", num_nu=2, num_chi=2)
STEPS["coptidice_without_bound"] = estimated("softchi", cost_ub_epsilon=0)


def decided(settings=None, **more):
    """A decision transformer learns of stretches of episodes."""

    def make():
        given = {"embedding_dim": 8, "num_layers": 1, "num_heads": 2, "seq_len": LENGTH, "episode_len": 50}
        net = CDT(OBS, ACT, 1.0, **{**given, "use_rew": True, "use_cost": True, **(settings or {})}).to(D)
        runs = CDTTrainer(net, None, lr_warmup_steps=10, device=D, **more)

        def go():
            shape = (BATCH, LENGTH)
            mask = torch.ones(shape)
            mask[0, :2] = 0
            batch = [
                torch.randn(*shape, OBS),
                torch.rand(*shape, ACT),
                torch.rand(shape),
                torch.rand(shape),
                torch.arange(LENGTH).repeat(BATCH, 1),
                mask,
                torch.rand(BATCH),
                (torch.rand(shape) > 0.5).float(),
            ]
            runs.train_one_step(*[each.to(D) for each in batch])

        return go

    return make


STEPS["decided"] = decided()
STEPS["decided_at_random"] = decided({"stochastic": True, "target_entropy": -2.0, "cost_prefix": True})
STEPS["decided_by_more"] = decided(
    {"time_emb": False, "cost_transform": True, "add_cost_feat": True, "action_head_layers": 2},
    loss_cost_weight=0.1,
    loss_state_weight=0.1,
)
STEPS["decided_by_products"] = decided(
    {"mul_cost_feat": True, "stochastic": True, "target_entropy": -2.0}, no_entropy=True
)
STEPS["decided_by_both"] = decided({"cat_cost_feat": True}, clip_grad=None)
