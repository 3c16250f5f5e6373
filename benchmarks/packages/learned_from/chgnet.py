"""Training steps over CHGNet 0.4.2: its trainer's epochs over crystals, by targets, losses, read-outs and schedules."""

from chgnet.data.dataset import StructureData, collate_graphs
from chgnet.graph import CrystalGraphConverter
from chgnet.model.model import CHGNet
from chgnet.trainer import Trainer
from pymatgen.core import Lattice, Structure

SMALL = {
    "atom_fea_dim": 8,
    "bond_fea_dim": 8,
    "angle_fea_dim": 8,
    "num_radial": 5,
    "num_angular": 5,
    "n_conv": 3,
    "atom_conv_hidden_dim": 8,
    "bond_conv_hidden_dim": 8,
    "mlp_hidden_dims": (8, 8),
}


def crystals(count=4):
    """Rock salts of many sizes, each a little pushed about."""
    for i in range(count):
        pair = (("Li", "F"), ("Na", "Cl"), ("Mn", "O"), ("Fe", "O"))[i % 4]
        cell = Structure.from_spacegroup("Fm-3m", Lattice.cubic(4.0 + 0.2 * i), pair, [[0, 0, 0], [0.5, 0.5, 0.5]])
        cell = cell.get_primitive_structure()
        cell.perturb(0.1)
        yield cell


def batches(missing=False, **more):
    """Two batches of two crystals, made anew for each epoch as a loader makes them."""
    converter = CrystalGraphConverter(atom_graph_cutoff=5, bond_graph_cutoff=3, **more)
    structures = list(crystals())
    energies = [float("nan") if missing and not i else -3.0 - 0.1 * i for i in range(4)]
    data = StructureData(
        structures,
        energies,
        [np.random.randn(len(each), 3).tolist() for each in structures],
        stresses=[np.random.randn(3, 3).tolist() for _ in structures],
        magmoms=[
            None if missing and not i else np.random.rand(len(each)).tolist() for i, each in enumerate(structures)
        ],
        graph_converter=converter,
        shuffle=False,
    )
    return torch.utils.data.DataLoader(data, batch_size=2, collate_fn=collate_graphs)


def trained(targets="ef", missing=False, model=None, converter=None, **more):
    """A step is an epoch of two batches."""

    def make():
        net = CHGNet(**{**SMALL, **(model or {})})
        trainer = Trainer(net, targets=targets, use_device="cuda", print_freq=1, epochs=10, **more)
        net.to(trainer.device)
        loader = batches(missing, **(converter or {}))
        return lambda: trainer._train(loader, 0)

    return make


for each in ("e", "ef", "efs", "efm", "efsm", "em"):
    STEPS[f"targets_{each}"] = trained(each)
STEPS["labels_that_are_missing"] = trained("efsm", missing=True)
STEPS["labels_that_may_not_be_missing"] = trained("efsm", allow_missing_labels=False)
for each in ("MSE", "MAE", "Huber"):
    STEPS[f"criterion_{each}"] = trained("efsm", criterion=each, mag_loss_ratio=1)
for each in ("SGD", "AdamW", "RAdam"):
    STEPS[f"optimizer_{each}"] = trained(optimizer=each)
for each in ("MultiStepLR", "ExponentialLR", "CosLR", "CosRestartLR"):
    STEPS[f"scheduler_{each}"] = trained(scheduler=each)
STEPS["read_out_of_average"] = trained("efsm", model={"mlp_first": False, "read_out": "ave"})
STEPS["read_out_of_attention"] = trained("efsm", model={"mlp_first": False, "read_out": "attn"})
STEPS["gated_read_out"] = trained("ef", model={"final_mlp": "gMLP", "mlp_first": False, "mlp_out_bias": True})
STEPS["without_bonds"] = trained("ef", model={"update_bond": False, "update_angle": False})
STEPS["hidden_layers"] = trained("ef", model={"angle_layer_hidden_dim": 8, "conv_dropout": 0.1, "mlp_dropout": 0.1})
STEPS["norms_of_batches"] = trained("ef", model={"gMLP_norm": "batch", "readout_norm": "batch", "conv_norm": "batch"})
STEPS["fixed_bases"] = trained("efsm", model={"learnable_rbf": False, "non_linearity": "tanh", "cutoff_coeff": 5})
STEPS["extensive"] = trained("efsm", model={"is_intensive": False})
STEPS["legacy_graphs"] = trained("ef", converter={"algorithm": "legacy"})


@step
def without_a_composition_model():
    return trained("efsm", model={"composition_model": None})()


@step
def composition_model_that_is_trained():
    """As `train` lets it, for other reference energies."""
    net = CHGNet(**SMALL)
    trainer = Trainer(net, targets="efs", use_device="cuda", print_freq=1)
    net.to(trainer.device)
    for each in net.composition_model.parameters():
        each.requires_grad = True
    loader = batches()
    return lambda: trainer._train(loader, 0)
