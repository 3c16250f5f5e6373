"""Training steps over pyKT 0.0.38: what a learner knows, traced by each of its models, as `train_model` goes on with a batch."""

from unittest import mock

absent("wandb")

# its modules ask for the device where they are imported
with mock.patch.object(torch.cuda, "is_available", lambda: True):
    from pykt.models.akt import AKT
    from pykt.models.atkt import ATKT
    from pykt.models.deep_irt import DeepIRT
    from pykt.models.dkt import DKT
    from pykt.models.dkt_forget import DKTForget
    from pykt.models.dkt_plus import DKTPlus
    from pykt.models.dkvmn import DKVMN
    from pykt.models.gkt import GKT
    from pykt.models.hawkes import HawkesKT
    from pykt.models.iekt import IEKT
    from pykt.models.kqn import KQN
    from pykt.models.lpkt import LPKT
    from pykt.models.qdkt import QDKT
    from pykt.models.saint import SAINT
    from pykt.models.sakt import SAKT
    from pykt.models.skvmn import SKVMN
    from pykt.models.train_model import model_forward, train_model

LEARNERS, LENGTH, QUESTIONS, CONCEPTS = 6, 10, 12, 7


def batch(concepts=None):
    """What a data set gives: questions, concepts, answers and times, each with the one that follows, on the device."""
    questions = torch.randint(1, QUESTIONS, (LEARNERS, LENGTH), device=D)
    known = torch.randint(0, CONCEPTS, (LEARNERS, LENGTH) + ((concepts,) if concepts else ()), device=D)
    answers = torch.randint(0, 2, (LEARNERS, LENGTH), device=D).float()
    times = torch.arange(1, LENGTH + 1, device=D).repeat(LEARNERS, 1) * 60
    gaps = torch.randint(0, 5, (LEARNERS, LENGTH), device=D)
    data = {}
    for name, values in {"q": questions, "c": known, "r": answers, "t": times, "it": gaps}.items():
        data[f"{name}seqs"], data[f"shft_{name}seqs"] = values[:, :-1], values[:, 1:]
    data["masks"] = data["smasks"] = torch.rand(LEARNERS, LENGTH - 1, device=D) > 0.2
    return data


def gaps():
    """How long ago a concept was met, which `dkt_forget` is given beside the batch."""
    return {
        shifted + name: torch.randint(0, 4, (LEARNERS, LENGTH - 1), device=D)
        for shifted in ("", "shft_")
        for name in ("rgaps", "sgaps", "pcounts")
    }


def traced(make_model, concepts=None, beside=None):
    """A step is what the loop of `train_model` does with a batch."""

    def make():
        model = make_model().to(D)
        optimizer = torch.optim.Adam(getattr(model, "model", model).parameters(), 1e-3)

        def go():
            data = batch(concepts)
            getattr(model, "model", model).train()
            loss = model_forward(model, (data, beside()) if beside else data)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return go

    return make


STEPS["dkt"] = traced(lambda: DKT(CONCEPTS, 8))
STEPS["dkt_plus"] = traced(lambda: DKTPlus(CONCEPTS, 8, 0.01, 0.003, 3.0))
STEPS["dkt_forget"] = traced(lambda: DKTForget(CONCEPTS, 4, 4, 4, 8), beside=gaps)
STEPS["dkvmn"] = traced(lambda: DKVMN(CONCEPTS, 8, 5))
STEPS["deep_irt"] = traced(lambda: DeepIRT(CONCEPTS, 8, 5))
STEPS["sakt"] = traced(lambda: SAKT(CONCEPTS, LENGTH, 8, 2, 0.1, 1))
STEPS["saint"] = traced(lambda: SAINT(QUESTIONS, CONCEPTS, LENGTH, 8, 2, 0.1, 1))
STEPS["kqn"] = traced(lambda: KQN(CONCEPTS, 8, 8, 8, 0.1))
STEPS["atkt"] = traced(lambda: ATKT(CONCEPTS, 8, 8, 8, fix=False))
STEPS["atkt_fixed"] = traced(lambda: ATKT(CONCEPTS, 8, 8, 8, fix=True))
STEPS["akt"] = traced(lambda: AKT(CONCEPTS, QUESTIONS, 8, 1, 0.1, d_ff=16, num_attn_heads=2, final_fc_dim=16))
STEPS["akt_without_questions"] = traced(lambda: AKT(CONCEPTS, 0, 8, 1, 0.1, d_ff=16, num_attn_heads=2, final_fc_dim=16))
STEPS["gkt"] = traced(lambda: GKT(CONCEPTS, 8, 8, graph_type="dense", graph=torch.ones(CONCEPTS, CONCEPTS) / CONCEPTS))
STEPS["gkt_transition"] = traced(
    lambda: GKT(CONCEPTS, 8, 8, graph_type="transition", graph=torch.rand(CONCEPTS, CONCEPTS), dropout=0.1)
)
STEPS["lpkt"] = traced(
    lambda: LPKT(10, 10, QUESTIONS, CONCEPTS, 8, 8, 8, q_matrix=torch.ones(QUESTIONS + 1, CONCEPTS + 1).to(D))
)
STEPS["skvmn"] = traced(lambda: SKVMN(CONCEPTS, 8, 5))
STEPS["hawkes"] = traced(lambda: HawkesKT(CONCEPTS, QUESTIONS, 8, 5.0))
STEPS["iekt"] = traced(lambda: IEKT(QUESTIONS, CONCEPTS, 8, 2, cog_levels=3, acq_levels=3, device=D), concepts=2)
STEPS["qdkt"] = traced(lambda: QDKT(QUESTIONS, CONCEPTS, 8, device=D), concepts=2)


def epochs(make_model, **more):
    """A step is an epoch of `train_model`, of two batches, and what it evaluates then."""

    def make():
        model = make_model().to(D)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        data = [batch(), batch()]
        return lambda: train_model(model, data, data, 1, optimizer, "")

    return make


STEPS["epoch_of_dkt"] = epochs(lambda: DKT(CONCEPTS, 8))
STEPS["epoch_of_sakt"] = epochs(lambda: SAKT(CONCEPTS, LENGTH, 8, 2, 0.1, 1))
