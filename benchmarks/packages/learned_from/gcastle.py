"""Training steps over gCastle 1.0.4: its gradient-based searches for causes, for an iteration or two each."""

import logging

from castle.algorithms.gradient.corl.torch.corl import CORL
from castle.algorithms.gradient.dag_gnn.torch.dag_gnn import DAG_GNN
from castle.algorithms.gradient.gae.torch.gae import GAE
from castle.algorithms.gradient.mcsl.torch.mcsl import MCSL
from castle.algorithms.gradient.notears.torch.golem import GOLEM
from castle.algorithms.gradient.notears.torch.nonlinear import NotearsNonlinear
from castle.algorithms.gradient.notears.torch.utils import lbfgsb_scipy
from castle.algorithms.gradient.pnl.torch.pnl import PNL
from castle.algorithms.gradient.rl.torch.rl import RL

minimize = lbfgsb_scipy.sopt.minimize
lbfgsb_scipy.sopt.minimize = lambda *given, **more: minimize(*given, options={"maxiter": 2, "maxfun": 4}, **more)
logging.getLogger().setLevel(logging.WARNING)
NODES, ROWS = 4, 40


def learned(kind, rows=ROWS, **more):
    """A step is all of `learn`, of as few iterations as it goes."""

    def make():
        x = np.random.randn(rows, NODES)
        x[:, 1] += np.tanh(x[:, 0])
        x[:, 3] += x[:, 1] * 0.5
        return lambda: kind(device_type="gpu", **more).learn(x)

    return make


STEPS["golem"] = learned(GOLEM, num_iter=2, checkpoint_iter=2)
STEPS["golem_of_unequal_variances"] = learned(GOLEM, num_iter=3, equal_variances=False, lambda_1=2e-3)
STEPS["notears_mlp"] = learned(NotearsNonlinear, max_iter=1, hidden_layers=(4, 1), rho_max=10)
STEPS["notears_sobolev"] = learned(NotearsNonlinear, max_iter=1, model_type="sob", expansions=3, rho_max=10)
graph = {"encoder_hidden": 8, "decoder_hidden": 8, "epochs": 1, "k_max_iter": 1, "batch_size": 20, "c_a_thresh": 5.0}
STEPS["dag_gnn"] = learned(DAG_GNN, **graph)
STEPS["dag_gnn_sem"] = learned(DAG_GNN, encoder_type="sem", decoder_type="sem", **graph)
STEPS["dag_gnn_penalized"] = learned(DAG_GNN, use_a_connect_loss=True, use_a_positiver_loss=True, tau_a=0.1, **graph)
STEPS["gae"] = learned(GAE, epochs=2, init_iter=1, update_freq=2, rho_thresh=5.0)
STEPS["gae_stopped_early"] = learned(
    GAE, epochs=2, init_iter=1, update_freq=2, rho_thresh=5.0, early_stopping=True, hidden_dim=8
)
STEPS["mcsl"] = learned(MCSL, max_iter=1, iter_step=2, init_iter=1, num_hidden_layers=1, hidden_dim=4)
STEPS["mcsl_quadratic"] = learned(MCSL, model_type="qr", max_iter=1, iter_step=2, init_iter=1)
STEPS["pnl"] = learned(PNL, epochs=1, hidden_units=4, batch_size=20)
order = {"batch_size": 4, "input_dim": 16, "embed_dim": 16, "encoder_heads": 2, "encoder_blocks": 1, "iteration": 2}
STEPS["corl"] = learned(CORL, **order)
STEPS["corl_dense"] = learned(CORL, reward_mode="dense", decoder_name="mlp", encoder_name="mlp", **order)
search = {
    "hidden_dim": 8,
    "num_heads": 2,
    "num_stacks": 1,
    "decoder_hidden_dim": 4,
    "batch_size": 4,
    "input_dimension": 8,
}
STEPS["rl"] = learned(RL, nb_epoch=2, **search)
STEPS["rl_with_bias"] = learned(RL, nb_epoch=2, use_bias=True, residual=True, score_type="BIC_different_var", **search)
STEPS["rl_ntn"] = learned(RL, nb_epoch=2, decoder_type="NTNDecoder", encoder_type="GATEncoder", **search)
