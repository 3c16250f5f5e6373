"""Training steps over recbole 1.2.1: batches of its trainers, of models that rank by taste, by order, by context and by knowledge."""

import os
import tempfile
from pathlib import Path

absent("ray lightgbm xgboost hyperopt thop")

for name, kind in {"float_": np.float64, "complex_": np.complex128, "unicode_": np.str_, "bool8": np.bool_}.items():
    setattr(np, name, kind)  # as numpy was when the package was made

import scipy.sparse

scipy.sparse.dok_matrix._update = lambda held, of: [held.__setitem__(at, one) for at, one in of.items()]  # as scipy was

from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.utils import get_model, get_trainer, init_seed

USERS, ITEMS, EACH = 40, 30, 14
FOLDER = Path(tempfile.mkdtemp())
os.chdir(FOLDER)


def written():
    """What was rated by whom and when, what is known of each, as the library's files are laid."""
    folder, rng = FOLDER / "toy", np.random.RandomState(0)
    folder.mkdir()
    rows = [
        f"{u}\t{i}\t{rng.randint(1, 6)}\t{1000 * u + n}"
        for u in range(1, USERS + 1)
        for n, i in enumerate(rng.permutation(ITEMS)[:EACH] + 1)
    ]
    (folder / "toy.inter").write_text("\n".join(["user_id:token\titem_id:token\trating:float\ttimestamp:float", *rows]))
    people = [f"{u}\t{rng.randint(1, 6)}\t{'mf'[u % 2]}" for u in range(1, USERS + 1)]
    (folder / "toy.user").write_text("\n".join(["user_id:token\tage:token\tgender:token", *people]))
    things = [f"{i}\tk{i % 5}\t{1990 + i}" for i in range(1, ITEMS + 1)]
    (folder / "toy.item").write_text("\n".join(["item_id:token\tclass:token\trelease_year:token", *things]))
    links = [f"{i}\te{i}" for i in range(1, ITEMS + 1)]
    (folder / "toy.link").write_text("\n".join(["item_id:token\tentity_id:token", *links]))
    facts = [f"e{h}\tr{rng.randint(1, 4)}\te{rng.randint(1, 50)}" for h in range(1, 50) for _ in range(4)]
    (folder / "toy.kg").write_text("\n".join(["head_id:token\trelation_id:token\ttail_id:token", *facts]))


written()


def trained(name, optimizers=1, before=0, **more):
    """A step is a batch of the trainer's `fit`, as quick_start runs it."""

    def make():
        given = {
            "data_path": str(FOLDER), "train_batch_size": 32, "eval_batch_size": 512, "epochs": 2, "gpu_id": "0", "show_progress": False,
            "state": "ERROR", "log_wandb": False, "embedding_size": 16, "hidden_size": 16, "load_col": {
                "inter": ["user_id", "item_id", "rating", "timestamp"], "user": ["user_id", "age", "gender"],
                "item": ["item_id", "class"], "kg": ["head_id", "relation_id", "tail_id"], "link": ["item_id", "entity_id"],
            }, **more,
        }  # fmt: skip
        import sys

        kept, sys.argv = sys.argv, sys.argv[:1]
        config = Config(model=name, dataset="toy", config_dict=given)
        sys.argv = kept
        init_seed(config["seed"], config["reproducibility"])
        dataset = create_dataset(config)
        train, later, _ = data_preparation(config, dataset)
        net = get_model(config["model"])(config, train._dataset).to(config["device"])
        held = get_trainer(config["MODEL_TYPE"], config["model"])(config, net)
        return loop(
            lambda: held.fit(train, later, saved=False, show_progress=config["show_progress"]), optimizers, before
        )

    return make


GENERAL = "BPR NeuMF DMF FISM NAIS LightGCN NGCF SGL GCMC SpectralCF DGCF LINE NNCF SimpleX"
for name in GENERAL.split():
    STEPS[name] = trained(name)
for name in "MultiVAE MultiDAE MacridVAE CDAE ENMF DiffRec".split():
    STEPS[name] = trained(name, train_batch_size=4)
ORDERED = "GRU4Rec SASRec NARM STAMP Caser SRGNN GCSAN NextItNet BERT4Rec FPMC HGN LightSANs SINE FEARec CORE TransRec RepeatNet"
for name in ORDERED.split():
    more = {} if name in ("FPMC", "TransRec") else {"train_neg_sample_args": None, "loss_type": "CE"}
    STEPS[name] = trained(name, MAX_ITEM_LIST_LENGTH=10, **more)
for name in "LR FM DeepFM DCN AutoInt xDeepFM PNN".split():
    STEPS[name] = trained(
        name, threshold={"rating": 3}, eval_args={"mode": "labeled"}, valid_metric="AUC", metrics=["AUC", "LogLoss"]
    )
for name in "CKE KGCN".split():
    STEPS[name] = trained(name)
