"""Training steps over easy-tpp 0.3.0: batches of its runner, each model of events in time, on noise."""

import os
import pickle
import tempfile

import yaml
from easy_tpp.config_factory import Config
from easy_tpp.runner import Runner

KINDS, PAD = 3, 3


def sequences(count):
    """Sequences of events, each with its time and its kind, some longer than others."""
    made = []
    for _ in range(count):
        gaps = np.random.exponential(1.0, np.random.randint(6, 12))
        times = gaps.cumsum()
        made.append(
            [
                {"time_since_start": float(t), "time_since_last_event": float(gap), "type_event": int(kind)}
                for t, gap, kind in zip(times, gaps, np.random.randint(0, KINDS, len(gaps)), strict=True)
            ]
        )
    return made


SMALL = {"hidden_size": 8, "time_emb_size": 4, "num_layers": 2, "num_heads": 2, "loss_integral_num_sample_per_step": 5}
THINNING = {"num_sample": 1, "num_exp": 20, "look_ahead_time": 10, "patience_counter": 5, "over_sample_rate": 5,
            "num_samples_boundary": 5, "dtime_max": 5, "num_step_gen": 1}  # fmt: skip


def trained(model, specs=None, data=None, optimizer="adam", thinning=True, **more):
    """A step is a batch of an epoch of the runner's."""

    def make():
        home = tempfile.mkdtemp()
        file = os.path.join(home, "events.pkl")
        with open(file, "wb") as held:
            pickle.dump({"dim_process": KINDS, "train": sequences(72), "dev": sequences(8), "test": sequences(8)}, held)
        config = {
            "pipeline_config_id": "runner_config",
            "data": {
                "noise": {
                    "data_format": "pkl", "train_dir": file, "valid_dir": file, "test_dir": file,
                    "data_specs": {"num_event_types": KINDS, "pad_token_id": PAD, "padding_side": "right", **(data or {})},
                }
            },
            "trained": {
                "base_config": {"stage": "train", "backend": "torch", "dataset_id": "noise", "runner_id": "std_tpp",
                                "model_id": model, "base_dir": home},
                "trainer_config": {"batch_size": 8, "max_epoch": 2, "shuffle": True, "optimizer": optimizer,
                                   "learning_rate": 1e-3, "valid_freq": 1, "metrics": ["acc", "rmse"], "seed": 1, "gpu": 0},
                "model_config": {**SMALL, **({"thinning": THINNING} if thinning else {}), "model_specs": specs or {}, **more},
            },
        }  # fmt: skip
        path = os.path.join(home, "config.yaml")
        with open(path, "w") as held:
            yaml.safe_dump(config, held)
        runner = Runner.build_from_config(Config.build_from_yaml_file(path, experiment_id="trained"))
        return loop(runner.run)

    return make


OWN = {
    "FullyNN": {"num_mlp_layers": 2, "proper_marked_intensities": True},
    "IntensityFree": {"num_mix_components": 4},
    "ODETPP": {"ode_num_sample_per_step": 4, "time_factor": 100},
    "S2P2": {"P": 8},
}
for model in ("RMTPP", "NHP", "SAHP", "THP", "AttNHP", "ANHN", "FullyNN", "IntensityFree", "ODETPP", "S2P2", "WSMTHP"):
    STEPS[model] = trained(model, OWN.get(model))
for model in ("RMTPP", "NHP", "THP", "AttNHP", "S2P2", "SAHP"):
    STEPS[f"{model}_by_a_fixed_grid"] = trained(model, OWN.get(model), use_mc_samples=False)
for model in ("NHP", "THP", "IntensityFree", "FullyNN"):
    STEPS[f"{model}_rescaled"] = trained(model, OWN.get(model), data={"rescale_time": True})
for model in ("SAHP", "THP", "AttNHP", "ANHN"):
    STEPS[f"{model}_dropping"] = trained(model, dropout_rate=0.1, use_ln=True)
for model in ("RMTPP", "AttNHP", "S2P2"):
    STEPS[f"{model}_without_a_sampler"] = trained(model, OWN.get(model), thinning=False)
for model in ("NHP", "THP"):
    STEPS[f"{model}_padded_on_the_left"] = trained(model, data={"padding_side": "left"})
    STEPS[f"{model}_of_one_length"] = trained(model, data={"max_len": 12, "padding_strategy": "max_length"})
STEPS["FullyNN_of_unmarked"] = trained("FullyNN", {"num_mlp_layers": 2, "proper_marked_intensities": False})
STEPS["NHP_sgd"] = trained("NHP", optimizer="SGD")
STEPS["NHP_of_a_beta"] = trained("NHP", {"beta": 0.5, "bias": False})
for name, specs in (
    ("of_a_loop", {"for_loop": True}), ("of_relative_times", {"relative_time": True}), ("of_forward", {"int_forward_variant": True}),
    ("of_backward", {"int_backward_variant": True}),
    ("real", {"complex_values": False}), ("after", {"pre_norm": False, "post_norm": True}),
):  # fmt: skip
    STEPS[f"S2P2_{name}"] = trained("S2P2", {"P": 8, **specs})
STEPS["WSMTHP_batchwise"] = trained("WSMTHP", {"T_mode": "batch"})
STEPS["WSMTHP_of_a_time"] = trained("WSMTHP", {"T_mode": "manual", "max_observed_time": 15.0})
