"""Training steps over TorchCP 1.2.1: classifiers, regressions and graph networks that are trained for conformal prediction."""

absent("torchsort")

from torch_geometric.data import Data
from torchcp.classification.loss import CDLoss, ConfTrLoss, ConfTSLoss, SCPOLoss
from torchcp.classification.predictor import ClassConditionalPredictor, SplitPredictor
from torchcp.classification.score import APS, LAC, RAPS, SAPS, TOPK, EntmaxScore
from torchcp.classification.trainer import ConfTrTrainer, ConfTSTrainer, OrdinalTrainer
from torchcp.graph.trainer import CFGNNTrainer
from torchcp.regression.loss import QuantileLoss, R2ccpLoss
from torchcp.regression.predictor import SplitPredictor as RegressionPredictor
from torchcp.regression.score import CQR

ROWS, WIDTH, CLASSES = 64, 10, 5


def classifier(outputs=CLASSES):
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 16), torch.nn.ReLU(), torch.nn.Linear(16, outputs))


def rows():
    return torch.randn(ROWS, WIDTH), torch.randint(0, CLASSES, (ROWS,))


def conformal(loss, score=lambda: LAC(score_type="softmax"), predictor=SplitPredictor, **more):
    """A step is a batch from the host, cross entropy and a loss of the sets that would be predicted."""

    def make():
        net = classifier()
        held = {}

        def value(model):
            x, y = (each.to(D) for each in rows())
            logits = model(x)
            return torch.nn.functional.cross_entropy(logits, y) + 0.1 * held["loss"](logits, y).mean()

        go = train(net, value)
        held["loss"] = loss(predictor(score_function=score(), model=net), **more).to(D)
        return go

    return make


STEPS["conftr"] = conformal(ConfTrLoss, alpha=0.1, fraction=0.5)
STEPS["conftr_hard"] = conformal(ConfTrLoss, alpha=0.1, fraction=0.5, soft_qunatile=False, epsilon=0.1)
STEPS["conftr_by_class"] = conformal(
    ConfTrLoss, predictor=ClassConditionalPredictor, alpha=0.1, fraction=0.5, soft_qunatile=False, epsilon=0.1
)
STEPS["conftr_probs"] = conformal(
    ConfTrLoss, lambda: APS(randomized=False), alpha=0.1, fraction=0.5, loss_type="probs", epsilon=0.1
)
STEPS["conftr_coverage"] = conformal(
    ConfTrLoss, alpha=0.1, fraction=0.5, loss_type="coverage", loss_transform="abs", epsilon=0.1
)
STEPS["conftr_classification"] = conformal(
    ConfTrLoss, APS, alpha=0.1, fraction=0.5, loss_type="classification", target_size=0, epsilon=0.1
)
STEPS["conftr_raps"] = conformal(ConfTrLoss, lambda: RAPS(penalty=0.1, kreg=1), alpha=0.1, fraction=0.5, epsilon=0.1)
STEPS["conftr_saps"] = conformal(ConfTrLoss, lambda: SAPS(weight=0.2), alpha=0.1, fraction=0.5, epsilon=0.1)
STEPS["conftr_topk"] = conformal(ConfTrLoss, TOPK, alpha=0.1, fraction=0.5, epsilon=0.1)
STEPS["conftr_entmax"] = conformal(ConfTrLoss, lambda: EntmaxScore(gamma=2.0), alpha=0.1, fraction=0.5, epsilon=0.1)
STEPS["confts"] = conformal(ConfTSLoss, lambda: APS(randomized=False), alpha=0.1, fraction=0.5)
STEPS["confts_hard"] = conformal(ConfTSLoss, alpha=0.1, fraction=0.5, soft_qunatile=False)
STEPS["scpo"] = conformal(SCPOLoss, lambda: LAC(score_type="identity"), alpha=0.1, loss_transform="neg_inv")
STEPS["cd"] = conformal(CDLoss, epsilon=0.1)
STEPS["cd_of_aps"] = conformal(CDLoss, lambda: APS(randomized=False), epsilon=0.1)


def loader():
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*rows()), batch_size=32, shuffle=True)


def epochs(make_trainer, validated=False):
    """A step is an epoch of two batches, of the trainer's own."""

    def make():
        trainer = make_trainer(classifier().to(D))
        batches, held = loader(), loader()

        def go():
            trainer.train_epoch(batches)
            if validated:
                trainer.validate(held)

        return go

    return make


STEPS["conftr_trainer"] = epochs(lambda net: ConfTrTrainer(0.1, net, device=torch.device(D), verbose=False))
STEPS["conftr_trainer_validated"] = epochs(
    lambda net: ConfTrTrainer(0.1, net, device=torch.device(D), verbose=True), validated=True
)
STEPS["ordinal_trainer"] = epochs(
    lambda net: OrdinalTrainer(net, {"phi": "abs", "varphi": "square"}, device=torch.device(D), verbose=True)
)


@step
def confts_trainer():
    trainer = ConfTSTrainer(classifier().to(D), 0.1, 1.5, device=torch.device(D), verbose=True)
    batches = loader()
    return lambda: trainer.train(batches, num_epochs=1)


@step
def cfgnn():
    """An epoch of a graph's network, and how large its sets are then."""
    edges = torch.randint(0, 60, (2, 200))
    parts = torch.randperm(60)
    data = Data(x=torch.randn(60, WIDTH), edge_index=edges, y=torch.arange(60) % CLASSES)
    data.train_idx, data.val_idx, data.calib_train_idx = parts[:20], parts[20:40], parts[40:]

    class Backbone(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = classifier()

        def forward(self, x, edge_index):
            return self.net(x)

    trainer = CFGNNTrainer(Backbone().to(D), data, hidden_channels=8, device=D)
    count = iter(range(1000, 10**6))

    def go():
        trainer._train_each_epoch(next(count))
        return trainer._evaluate()

    return go


def regressed(loss, outputs):
    def make():
        def value(model):
            x, y = torch.randn(ROWS, WIDTH).to(D), torch.rand(ROWS, 1).to(D)
            return loss(model(x), y)

        return train(classifier(outputs), value)

    return make


STEPS["quantiles"] = regressed(QuantileLoss([0.05, 0.95]), 2)


@step
def r2ccp():
    loss = R2ccpLoss(p=2.0, tau=0.5, midpoints=torch.linspace(0, 1, 6))
    return train(
        classifier(6), lambda net: loss(net(torch.randn(ROWS, WIDTH).to(D)).softmax(1), torch.rand(ROWS, 1).to(D))
    )


@step
def quantiles_calibrated():
    """A batch for the quantiles, and the threshold of another one that was held out."""
    predictor = RegressionPredictor(CQR(), model=None)
    loss = QuantileLoss([0.05, 0.95])
    net = classifier(2)
    go = train(net, lambda model: loss(model(torch.randn(ROWS, WIDTH).to(D)), torch.rand(ROWS, 1).to(D)))

    def both():
        go()
        with torch.no_grad():
            predicted = net(torch.randn(ROWS, WIDTH).to(D))
        scores = predictor.score_function(predicted, torch.rand(ROWS, 1).to(D))
        predictor.scores = scores
        predictor.q_hat = predictor._calculate_conformal_value(scores, 0.1)

    return both
