"""Training steps over Qlib 0.9.7: epochs of its networks that forecast returns of shares, of a few batches each, as `fit` trains."""

import tempfile

import pandas as pd

absent("bson mlflow lightgbm pymongo cvxpy gym redis_lock tabulate")

from qlib.contrib.model.pytorch_adarnn import ADARNN, get_stock_loader
from qlib.contrib.model.pytorch_add import ADD
from qlib.contrib.model.pytorch_alstm import ALSTM
from qlib.contrib.model.pytorch_gats import GATs
from qlib.contrib.model.pytorch_gats_ts import GATs as GATsOfSeries
from qlib.contrib.model.pytorch_general_nn import GeneralPTNN
from qlib.contrib.model.pytorch_igmtf import IGMTF
from qlib.contrib.model.pytorch_krnn import KRNN
from qlib.contrib.model.pytorch_localformer import LocalformerModel
from qlib.contrib.model.pytorch_lstm import LSTM
from qlib.contrib.model.pytorch_sandwich import Sandwich
from qlib.contrib.model.pytorch_sfm import SFM
from qlib.contrib.model.pytorch_tabnet import FinetuneModel, TabnetModel
from qlib.contrib.model.pytorch_tcn_ts import TCN
from qlib.contrib.model.pytorch_tcts import TCTS
from qlib.contrib.model.pytorch_tra import TRAModel
from qlib.model.utils import ConcatDataset

DAYS, SHARES, WIDTH, LENGTH = 12, 12, 6, 10


def table(columns=WIDTH * LENGTH, targets=1):
    """What is known of each share on each day, and what it returned."""
    days = pd.date_range("2020-01-01", periods=DAYS)
    index = pd.MultiIndex.from_product([days, [f"S{i}" for i in range(SHARES)]], names=["datetime", "instrument"])
    x = pd.DataFrame(np.random.randn(len(index), columns).astype("float32"), index=index)
    y = pd.DataFrame(np.random.randn(len(index), targets).astype("float32"), index=index)
    return x, y


def epochs(kind, **more):
    """A step is an epoch of a model that draws its batches itself."""

    def make():
        x, y = table()
        model = kind(d_feat=WIDTH, batch_size=48, n_epochs=1, metric="loss", GPU=0, **more)
        return lambda: model.train_epoch(x, y)

    return make


STEPS["lstm"] = epochs(LSTM, hidden_size=8)
STEPS["alstm"] = epochs(ALSTM, hidden_size=8, num_layers=1)
STEPS["gats"] = epochs(GATs, hidden_size=8)
STEPS["gats_of_lstm"] = epochs(GATs, hidden_size=8, base_model="LSTM", optimizer="gd")
STEPS["sfm"] = epochs(SFM, hidden_size=8, freq_dim=4)
STEPS["krnn"] = epochs(
    lambda d_feat, **rest: KRNN(fea_dim=d_feat, **rest), cnn_dim=8, rnn_dim=8, rnn_dups=2, rnn_layers=1
)
STEPS["sandwich"] = epochs(
    lambda d_feat, **rest: Sandwich(fea_dim=d_feat, **rest), cnn_dim_1=8, cnn_dim_2=8, rnn_dim_1=8, rnn_dim_2=8
)
STEPS["localformer"] = epochs(LocalformerModel, d_model=8, nhead=2, num_layers=1)


@step
def lstm_validated():
    """An epoch, and the scores after which `fit` may stop."""
    (x, y), (xv, yv) = table(), table()
    model = LSTM(d_feat=WIDTH, hidden_size=8, batch_size=48, metric="loss")

    def go():
        model.train_epoch(x, y)
        return model.test_epoch(xv, yv)

    return go


class Series(torch.utils.data.Dataset):
    """What a `TSDatasetH` gives: for each share and day the days before."""

    def __init__(self):
        self.rows = np.random.randn(DAYS * SHARES, LENGTH, WIDTH + 1).astype("float32")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


@step
def tcn_of_series():
    model = TCN(d_feat=WIDTH, n_chans=8, num_layers=2, batch_size=48, n_jobs=0)
    loader = torch.utils.data.DataLoader(Series(), batch_size=48, shuffle=True, drop_last=True)
    return lambda: model.train_epoch(loader)


@step
def gats_of_series():
    model = GATsOfSeries(d_feat=WIDTH, hidden_size=8, n_jobs=0)
    loader = torch.utils.data.DataLoader(Series(), batch_size=48, shuffle=True, drop_last=True)
    return lambda: model.train_epoch(loader)


def weighted(rows, uri, **kwargs):
    """A model that is named by its module, of rows that have weights."""

    def make():
        model = GeneralPTNN(pt_model_uri=uri, pt_model_kwargs=kwargs, batch_size=48, n_jobs=0)
        data = rows()
        loader = torch.utils.data.DataLoader(
            ConcatDataset(data, np.ones(len(data), "float32")), batch_size=48, shuffle=True, drop_last=True
        )
        return lambda: model.train_epoch(loader)

    return make


STEPS["general_gru"] = weighted(
    Series, "qlib.contrib.model.pytorch_gru_ts.GRUModel", d_feat=WIDTH, hidden_size=8, num_layers=1
)
STEPS["general_of_tables"] = weighted(
    lambda: np.random.randn(144, WIDTH + 1).astype("float32"),
    "qlib.contrib.model.pytorch_nn.Net",
    input_dim=WIDTH,
    output_dim=1,
    layers=(8,),
)


def adarnn(epoch, **more):
    def make():
        model = ADARNN(d_feat=6, hidden_size=8, num_layers=1, pre_epoch=1, len_seq=60, batch_size=24, **more)
        x, y = table(360)
        frame = pd.concat({"feature": x, "label": y}, axis=1)
        half = len(frame) // 2
        loaders = [get_stock_loader(part, 24) for part in (frame[:half], frame[half:])]
        held = list(model.train_AdaRNN(loaders, 0)) if epoch else [None, None]
        count = iter(range(epoch, 10**6))

        def go():
            at = next(count) if epoch else 0
            held[:] = model.train_AdaRNN(loaders, at, held[1], held[0]) if epoch else [None, None]
            if not epoch:
                model.train_AdaRNN(loaders, 0, None, None)

        return go

    return make


STEPS["adarnn_at_first"] = adarnn(0, loss_type="mmd")
STEPS["adarnn_boosted"] = adarnn(1, loss_type="cosine")
STEPS["adarnn_coral"] = adarnn(0, loss_type="coral")


@step
def add():
    model = ADD(d_feat=WIDTH, hidden_size=8, num_layers=1, batch_size=48)
    x, y = table()
    market = np.random.randint(0, 3, len(y))
    return lambda: model.train_epoch(x.values, np.squeeze(y.values), market)


@step
def igmtf():
    model = IGMTF(d_feat=WIDTH, hidden_size=8, num_layers=1, metric="ic")
    x, y = (each.iloc[1:] for each in table())  # not each share on each day

    def go():
        hidden, days = model.get_train_hidden(x)
        model.train_epoch(x, y, hidden, days)

    return go


def tcts(mode):
    def make():
        (x, y), (xv, yv) = table(targets=3), table(targets=3)
        model = TCTS(
            d_feat=WIDTH,
            hidden_size=8,
            num_layers=1,
            batch_size=48,
            input_dim=WIDTH * LENGTH + 7,
            target_label=1,
            mode=mode,
        )
        from qlib.contrib.model.pytorch_tcts import GRUModel, MLPModel

        model.fore_model = GRUModel(d_feat=WIDTH, hidden_size=8, num_layers=1).to(model.device)
        model.weight_model = MLPModel(WIDTH * LENGTH + 3 + 3 + 1 + 3, hidden_size=8, num_layers=1, output_dim=3).to(
            model.device
        )
        model.fore_optimizer = torch.optim.Adam(model.fore_model.parameters(), 1e-3)
        model.weight_optimizer = torch.optim.Adam(model.weight_model.parameters(), 1e-3)
        model.output_dim = 3
        return lambda: model.train_epoch(x, y, xv, yv)

    return make


STEPS["tcts_soft"] = tcts("soft")
STEPS["tcts_hard"] = tcts("hard")


def tabnet():
    return TabnetModel(d_feat=WIDTH, out_dim=8, batch_size=48, n_d=8, n_a=8, n_steps=2, vbs=16, pretrain=True)


@step
def tabnet_pretrained():
    model, (x, _) = tabnet(), table(WIDTH)
    return lambda: model.pretrain_epoch(x)


@step
def tabnet_tuned():
    model, (x, y) = tabnet(), table(WIDTH)
    model.tabnet_model = FinetuneModel(model.out_dim, model.final_out_dim, model.tabnet_model).to(model.device)
    return lambda: model.train_epoch(x, y)


class Memory:
    """Batches as `MTSDatasetH` gives them, with a memory of losses."""

    def __init__(self, states=3):
        self.states = states
        self.memory = torch.zeros(96, states, device=D)

    def train(self):
        pass

    def __len__(self):
        return 2

    def __iter__(self):
        for i in range(2):
            index = np.arange(48 * i, 48 * i + 48)
            yield {
                "data": torch.randn(48, LENGTH, WIDTH, device=D),
                "state": self.memory[index].unsqueeze(1).repeat(1, LENGTH, 1),
                "label": torch.randn(48, device=D),
                "index": index,
                "daily_index": np.arange(4 * i, 4 * i + 4),
                "daily_count": np.full(4, 12),
            }

    def assign_data(self, index, values):
        self.memory[index] = values.detach()


def tra(pretrain=False, backbone="RNN", **more):
    def make():
        from qlib.contrib.model import pytorch_tra

        pytorch_tra.device = D
        sizes = {"input_size": WIDTH, "hidden_size": 8, "num_layers": 1}
        if backbone == "Transformer":
            sizes["num_heads"] = 2
        model = TRAModel(
            sizes,
            {"num_states": 3, "hidden_size": 8, "tau": 1.0, "src_info": "LR_TPE", "rnn_arch": "GRU"},
            model_type=backbone,
            **more,
        )
        data = Memory()
        return lambda: model.train_epoch(0, data, is_pretrain=pretrain)

    return make


STEPS["tra_pretrained"] = tra(True, transport_method="router")
STEPS["tra_routed"] = tra(transport_method="router", lamb=1.0)
STEPS["tra_by_oracle"] = tra(transport_method="oracle", lamb=1.0, backbone="Transformer")
STEPS["tra_logged"] = tra(transport_method="router", lamb=1.0, logdir=tempfile.mkdtemp())
STEPS["tra_without_transport"] = tra()
