"""Training steps over torch-rechub 0.9.0: batches of its trainers, which rank, match, and do several tasks, by each of its models."""

import tempfile

from torch_rechub.basic.features import DenseFeature, SequenceFeature, SparseFeature
from torch_rechub.models import matching as M
from torch_rechub.models import multi_task as T
from torch_rechub.models import ranking as R
from torch_rechub.models.generative.hstu import HSTUModel
from torch_rechub.models.generative.rqvae import RQVAEModel
from torch_rechub.trainers import CTRTrainer, MatchTrainer, MTLTrainer, SeqTrainer
from torch_rechub.trainers.rqvae_trainer import Trainer as CodesTrainer
from torch_rechub.utils.data import DataGenerator, MatchDataGenerator, SequenceDataGenerator
from torch.utils.data import DataLoader

ROWS, BATCH, VOCAB, WIDE, LONG = 160, 8, 20, 8, 6
MLP = {"dims": [16, 8], "dropout": 0.2, "activation": "relu"}


def sparse(name):
    return SparseFeature(name, vocab_size=VOCAB, embed_dim=WIDE)


def seen(name="hist", of="item", pooling="concat", **more):
    return SequenceFeature(name, vocab_size=VOCAB, embed_dim=WIDE, pooling=pooling, shared_with=of, **more)


WORDS = [sparse(f"c{n}") for n in range(4)]
NUMBERS = [DenseFeature(f"n{n}") for n in range(3)]


def table(extra=()):
    x = {each.name: np.random.randint(0, VOCAB, ROWS) for each in WORDS}
    x |= {each.name: np.random.rand(ROWS).astype("float32") for each in NUMBERS}
    x |= {name: np.random.randint(1, VOCAB, ROWS) for name in ("item", "user")}
    x |= {"hist": np.random.randint(1, VOCAB, (ROWS, LONG)), "neg": np.random.randint(1, VOCAB, (ROWS, 3))}
    x |= {"neg_hist": np.random.randint(1, VOCAB, (ROWS, LONG)), "neg_item": np.random.randint(1, VOCAB, ROWS)}
    x |= {name: np.random.randint(1, VOCAB, (ROWS, LONG)) for name in ("seq", "pos_seq", "neg_seq")}
    x["sample_weight"] = np.random.rand(ROWS).astype("float32")
    return x


def ranked(net, loss_mode=True, data=table, **more):
    """A step is a batch of the trainer of ranks."""

    def make():
        train, seen_later, _ = DataGenerator(data(), np.random.randint(0, 2, ROWS).astype("float32")).generate_dataloader(
            split_ratio=[0.8, 0.1], batch_size=BATCH
        )  # fmt: skip
        held = CTRTrainer(net(), device=D, n_epoch=1, loss_mode=loss_mode, model_path=tempfile.mkdtemp(), **more)
        return loop(lambda: held.fit(train, seen_later))

    return make


STEPS["widedeep"] = ranked(lambda: R.WideDeep(WORDS, NUMBERS, MLP))
STEPS["deepfm"] = ranked(lambda: R.DeepFM(NUMBERS, WORDS, MLP))
STEPS["dcn"] = ranked(lambda: R.DCN(WORDS + NUMBERS, 2, MLP))
STEPS["dcn_v2"] = ranked(lambda: R.DCNv2(WORDS + NUMBERS, 2, MLP))
STEPS["dcn_v2_stacked"] = ranked(lambda: R.DCNv2(WORDS + NUMBERS, 2, MLP, model_structure="stacked"))
STEPS["dcn_v2_full"] = ranked(lambda: R.DCNv2(WORDS + NUMBERS, 2, MLP, use_low_rank_mixture=False))
STEPS["edcn"] = ranked(lambda: R.EDCN(WORDS, 2, {**MLP, "dims": [4 * WIDE]}))
STEPS["fibinet"] = ranked(lambda: R.FiBiNet(WORDS, MLP))
STEPS["autoint"] = ranked(lambda: R.AutoInt(WORDS, NUMBERS, mlp_params=MLP))
STEPS["afm"] = ranked(lambda: R.AFM(WORDS, WIDE))
STEPS["deepffm"] = ranked(
    lambda: R.DeepFFM(WORDS, [SparseFeature(f"c{n}", VOCAB * 4, embed_dim=4) for n in range(4)], 4, MLP)
)
STEPS["din"] = ranked(lambda: R.DIN(WORDS, [seen()], [sparse("item")], {"dims": [16, 8]}, {"dims": [16, 8]}))
STEPS["bst"] = ranked(lambda: R.BST(WORDS, [seen()], [sparse("item")], MLP, nhead=4))
PAD = {"padding_idx": 0}
STEPS["dien"] = ranked(
    lambda: R.DIEN(
        WORDS, [seen(**PAD)], [seen("neg_hist", **PAD)], [SparseFeature("item", VOCAB, embed_dim=WIDE, **PAD)], {"dims": [16, 8]}
    ),
    loss_mode=False,
)  # fmt: skip
STEPS["deepfm_regularized"] = ranked(
    lambda: R.DeepFM(NUMBERS, WORDS, MLP),
    regularization_params={"embedding_l1": 0.0, "embedding_l2": 1e-5, "dense_l1": 1e-6, "dense_l2": 1e-5},
)
STEPS["deepfm_scheduled"] = ranked(
    lambda: R.DeepFM(NUMBERS, WORDS, MLP),
    scheduler_fn=torch.optim.lr_scheduler.StepLR,
    scheduler_params={"step_size": 2, "gamma": 0.8},
)
STEPS["deepfm_dice"] = ranked(lambda: R.DeepFM(NUMBERS, WORDS, {**MLP, "activation": "dice"}))


def tasks(net, so_many=2, optimizers=1, **more):
    """A step is a batch of the trainer of several tasks."""

    def make():
        train, seen_later, _ = DataGenerator(table(), np.random.randint(0, 2, (ROWS, so_many)).astype("float32")).generate_dataloader(
            split_ratio=[0.8, 0.1], batch_size=BATCH
        )  # fmt: skip
        held = MTLTrainer(
            net(), task_types=["classification"] * so_many, device=D, n_epoch=1, model_path=tempfile.mkdtemp(), **more
        )
        return loop(lambda: held.fit(train, seen_later), optimizers)

    return make


TWO, TOWER = ["classification"] * 2, [{"dims": [8]}, {"dims": [8]}]
BOTH = WORDS + NUMBERS
STEPS["shared_bottom"] = tasks(lambda: T.SharedBottom(BOTH, TWO, {"dims": [16]}, TOWER))
STEPS["mmoe"] = tasks(lambda: T.MMOE(BOTH, TWO, 4, {"dims": [16]}, TOWER))
STEPS["ple"] = tasks(lambda: T.PLE(BOTH, TWO, 1, 2, 1, {"dims": [16]}, TOWER))
STEPS["aitm"] = tasks(lambda: T.AITM(WORDS, 2, {"dims": [16, 8]}, TOWER))
STEPS["esmm"] = tasks(lambda: T.ESMM(WORDS[:2], WORDS[2:], {"dims": [16]}, {"dims": [16]}), so_many=3)
STEPS["mmoe_weighed"] = tasks(lambda: T.MMOE(BOTH, TWO, 4, {"dims": [16]}, TOWER), adaptive_params={"method": "uwl"})

USER, ITEM = [sparse("user"), *WORDS[:2]], [sparse("item"), *WORDS[2:]]
NEG = [seen("neg", pooling="concat")]


def matched(net, mode=0, **more):
    """A step is a batch of the trainer of matches."""

    def make():
        y = np.random.randint(0, 2, ROWS).astype("float32") if mode == 0 else np.zeros(ROWS, dtype="int64")
        x = table()
        (train, _, _) = MatchDataGenerator(x, y).generate_dataloader(
            {k: v[:16] for k, v in x.items()}, {k: v[:16] for k, v in x.items()}, batch_size=BATCH, num_workers=0
        )
        held = MatchTrainer(net(), mode=mode, device=D, n_epoch=1, model_path=tempfile.mkdtemp(), **more)
        return loop(lambda: held.fit(train))

    return make


TOWERS = {"dims": [16, 8], "activation": "prelu"}
STEPS["dssm"] = matched(lambda: M.DSSM(USER, ITEM, TOWERS, TOWERS, temperature=0.02))
STEPS["dssm_in_batch"] = matched(lambda: M.DSSM(USER, ITEM, TOWERS, TOWERS, temperature=0.02), in_batch_neg=True)
STEPS["dssm_in_batch_some"] = matched(
    lambda: M.DSSM(USER, ITEM, TOWERS, TOWERS, temperature=0.02), in_batch_neg=True, in_batch_neg_ratio=3
)
STEPS["dssm_in_batch_hard"] = matched(
    lambda: M.DSSM(USER, ITEM, TOWERS, TOWERS, temperature=0.02), in_batch_neg=True, in_batch_neg_ratio=3, hard_negative=True
)  # fmt: skip
STEPS["facebook_dssm"] = matched(
    lambda: M.FaceBookDSSM(USER, ITEM, [SparseFeature("neg_item", VOCAB, embed_dim=WIDE, shared_with="item"), *WORDS[2:]], TOWERS, TOWERS),
    mode=1,
)  # fmt: skip
STEPS["youtube_dnn"] = matched(
    lambda: M.YoutubeDNN(USER + [seen(pooling="mean")], [sparse("item")], NEG, {"dims": [16, WIDE]}), mode=2
)
STEPS["gru4rec"] = matched(lambda: M.GRU4Rec(USER, [seen()], [sparse("item")], NEG, {"dims": [16, WIDE]}), mode=2)
STEPS["mind"] = matched(lambda: M.MIND(USER, [seen()], [sparse("item")], NEG, LONG), mode=2)
STEPS["comirec_sa"] = matched(lambda: M.ComirecSA(USER, [seen()], [sparse("item")], NEG), mode=2)
STEPS["comirec_dr"] = matched(lambda: M.ComirecDR(USER, [seen()], [sparse("item")], NEG, LONG), mode=2)
STEPS["sine"] = matched(lambda: M.SINE(["hist"], ["item"], ["neg"], VOCAB, WIDE, WIDE, 10, 2, LONG), mode=2)
STEPS["youtube_sbc"] = matched(
    lambda: M.YoutubeSBC(USER, ITEM, [DenseFeature("sample_weight")], TOWERS, TOWERS, BATCH), mode=2
)
STEPS["narm_in_batch"] = matched(
    lambda: M.NARM(seen(of=None), WIDE, 0.1, 0.1, SparseFeature("item", VOCAB, embed_dim=WIDE)), in_batch_neg=True
)
STEPS["stamp_in_batch"] = matched(
    lambda: M.STAMP(seen(of=None), 0.05, 0.002, SparseFeature("item", VOCAB, embed_dim=WIDE)), in_batch_neg=True
)


@step
def hstu():
    train, later, _ = SequenceDataGenerator(
        np.random.randint(1, VOCAB, (ROWS, 12)), np.tile(np.arange(12), (ROWS, 1)), np.random.randint(1, VOCAB, ROWS),
        np.random.randint(0, 100, (ROWS, 12)),
    ).generate_dataloader(batch_size=BATCH, num_workers=0, split_ratio=(0.8, 0.1, 0.1))  # fmt: skip
    net = HSTUModel(VOCAB, d_model=16, n_heads=2, n_layers=2, dqk=8, dv=8, max_seq_len=12)
    held = SeqTrainer(net, device=D, n_epoch=1, model_path=tempfile.mkdtemp())
    return loop(lambda: held.fit(train, later))


@step
def hstu_by_noise():
    train, later, _ = SequenceDataGenerator(
        np.random.randint(1, VOCAB, (ROWS, 12)), np.tile(np.arange(12), (ROWS, 1)), np.random.randint(1, VOCAB, ROWS),
        np.random.randint(0, 100, (ROWS, 12)),
    ).generate_dataloader(batch_size=BATCH, num_workers=0, split_ratio=(0.8, 0.1, 0.1))  # fmt: skip
    net = HSTUModel(VOCAB, d_model=16, n_heads=2, n_layers=2, dqk=8, dv=8, max_seq_len=12)
    held = SeqTrainer(net, device=D, n_epoch=1, model_path=tempfile.mkdtemp(), loss_type="nce")
    return loop(lambda: held.fit(train, later))


def coded(**more):
    def make():
        net = RQVAEModel(in_dim=24, num_emb_list=[8, 8], e_dim=8, layers=[16], **{"sk_epsilons": [0.0, 0.0], **more})
        held = CodesTrainer(net, device=D, n_epoch=1, model_path=tempfile.mkdtemp())
        rows = DataLoader(torch.rand(ROWS, 24), BATCH)
        return loop(lambda: held.fit(rows))

    return make


STEPS["codes"] = coded()
STEPS["codes_by_sinkhorn"] = coded(sk_epsilons=[0.0, 0.003], sk_iters=10)
STEPS["codes_from_kmeans"] = coded(kmeans_init=True, kmeans_iters=5)
