"""Training steps over TopMost 1.0.2: an epoch of its trainers over each of its topic models."""

absent("plotly sentence_transformers gensim fastopic bertopic torchvision")

import topmost
from topmost.data.crosslingual_dataset import _BilingualDataset
from topmost.data.dynamic_dataset import _SequentialDataset

DOCS, WORDS, TOPICS, TIMES = 24, 30, 5, 3


class Texts:
    """What its data sets hold, on the device, as they put it there."""

    def __init__(self, extra=0):
        bow = np.random.poisson(0.7, (DOCS, WORDS)).astype(np.float32)
        bow[:, 0] += 1
        held = np.concatenate([bow, np.random.randn(DOCS, extra).astype(np.float32)], 1) if extra else bow
        self.train_data = self.test_data = torch.from_numpy(held).float().to(D)
        self.vocab = [f"word{i}" for i in range(WORDS)]
        self.train_dataloader = torch.utils.data.DataLoader(self.train_data, batch_size=8, shuffle=True)


class Times(Texts):
    def __init__(self):
        super().__init__()
        self.train_bow, self.num_times = self.train_data, TIMES
        self.train_times = torch.arange(DOCS, device=D) % TIMES
        counts = torch.stack([self.train_bow[self.train_times == i].sum(0) for i in range(TIMES)])
        self.train_time_wordfreq = counts / counts.sum(1, keepdim=True)
        rows = _SequentialDataset(self.train_bow, self.train_times, self.train_time_wordfreq)
        self.train_dataloader = torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True)


class Languages(Texts):
    def __init__(self):
        super().__init__()
        other = torch.from_numpy(np.random.poisson(0.7, (DOCS, WORDS)).astype(np.float32)).to(D)
        rows = _BilingualDataset(self.train_data, other)
        self.train_dataloader = torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True)
        self.vocab_en = self.vocab_cn = self.vocab
        self.train_bow_en, self.train_bow_cn = self.train_data, other


def trained(model, texts=Texts, trainer=topmost.BasicTrainer, **more):
    """A step is an epoch of a trainer, without the words and shares of topics that follow the last one."""

    def make():
        held = texts()
        net = model(held).to(D)
        runs = trainer(net, held, epochs=1, batch_size=8, **more)
        runs.get_top_words = lambda *_, **__: ([], []) if texts is Languages else []
        runs.test = lambda *_, **__: ([], []) if texts is Languages else []
        return runs.train

    return make


STEPS["prod_lda"] = trained(lambda _: topmost.ProdLDA(WORDS, TOPICS, 16))
STEPS["prod_lda_logged"] = trained(lambda _: topmost.ProdLDA(WORDS, TOPICS, 16), log_interval=1, verbose=True)
STEPS["combined"] = trained(lambda _: topmost.CombinedTM(WORDS, 6, TOPICS, 16), lambda: Texts(6))
STEPS["decoupled"] = trained(lambda _: topmost.DecTM(WORDS, TOPICS, 16))
STEPS["embedded"] = trained(lambda _: topmost.ETM(WORDS, 8, TOPICS, 16, train_WE=True))
STEPS["embedded_pretrained"] = trained(
    lambda _: topmost.ETM(WORDS, 8, TOPICS, 16, pretrained_WE=np.random.rand(WORDS, 8))
)
STEPS["sinkhorn"] = trained(lambda _: topmost.NSTM(WORDS, TOPICS, 16, embed_size=8))
STEPS["short_texts"] = trained(lambda _: topmost.TSCTM(WORDS, TOPICS, 16))
STEPS["clustered"] = trained(lambda _: topmost.ECRTM(WORDS, TOPICS, 16, embed_size=8, sinkhorn_max_iter=60))
STEPS["clustered_logged"] = trained(lambda _: topmost.ECRTM(WORDS, TOPICS, 16, embed_size=8), log_interval=1)
deep = topmost.HierarchicalTrainer
STEPS["saw"] = trained(lambda _: topmost.SawETM(WORDS, [3, 5], D, 8, 16), trainer=deep)
STEPS["hyper"] = trained(lambda _: topmost.HyperMiner(WORDS, [3, 5], D, embed_size=8, hidden_size=16), trainer=deep)
STEPS["hyper_clipped"] = trained(
    lambda _: topmost.HyperMiner(WORDS, [3, 5], D, clip_r=2.0, curvature=None, embed_size=8, hidden_size=16),
    trainer=deep,
)
STEPS["tree"] = trained(lambda _: topmost.TraCo(WORDS, [3, 5], 16, embed_size=8, bias_topk=4), trainer=deep)
STEPS["tree_logged"] = trained(
    lambda _: topmost.TraCo(WORDS, [2, 3, 5], 16, embed_size=8, bias_topk=4), trainer=deep, log_interval=1
)


def over_time(held):
    return topmost.DETM(
        WORDS, TIMES, DOCS, held.train_time_wordfreq, TOPICS, en_units=16, eta_hidden_size=8, rho_size=8, device=D
    )


STEPS["over_time"] = trained(over_time, Times, topmost.DynamicTrainer)
STEPS["over_time_logged"] = trained(over_time, Times, topmost.DynamicTrainer, log_interval=1)
STEPS["chained"] = trained(
    lambda held: topmost.CFDTM(
        WORDS, held.train_time_wordfreq, TIMES, np.random.rand(WORDS, 8), TOPICS, 16, neg_topk=3
    ),
    Times,
    topmost.DynamicTrainer,
)


def both(held):
    return topmost.InfoCTM(np.eye(WORDS), np.random.rand(WORDS, 8), np.random.rand(WORDS, 8), WORDS, WORDS, TOPICS, 16)


STEPS["languages"] = trained(both, Languages, topmost.CrosslingualTrainer)
STEPS["languages_mapped"] = trained(
    lambda _: topmost.NMTM(np.eye(WORDS), np.eye(WORDS), WORDS, WORDS, TOPICS, 16),
    Languages,
    topmost.CrosslingualTrainer,
)
