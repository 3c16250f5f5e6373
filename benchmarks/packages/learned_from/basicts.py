"""Training steps over BasicTS 1.1.0: an epoch of two batches in its runner, over its networks, metrics and callbacks."""

import dataclasses
import importlib
import os
import tempfile

import basicts.runners.callback as callbacks
from basicts.configs import BasicTSForecastingConfig
from basicts.runners import BasicTSRunner
from easytorch.device import set_device_type

SERIES, BEFORE, AFTER, BATCH = 3, 16, 8, 4
SMALL = {
    "hidden_size": 8, "intermediate_size": 8, "n_heads": 2, "num_layers": 1, "num_encoder_layers": 1, "num_decoder_layers": 1,
    "patch_len": 4, "patch_stride": 4, "embed_size": 4, "num_features": SERIES, "input_len": BEFORE, "output_len": AFTER,
    "seg_len": 4, "label_len": 8, "moving_avg": 3, "dropout": 0.1, "d_model": 8, "period_len": 4, "num_experts": 2, "k": 1,
    "core": 4, "num_kernels": 2, "top_k": 2, "chunk_size": 4, "input_size": SERIES, "output_size": SERIES, "kernel_size": 3,
}  # fmt: skip


def numbers():
    """A folder of a data set, as it reads them."""
    folder = tempfile.mkdtemp()
    for mode in ("train", "val", "test"):
        rows = BEFORE + AFTER - 1 + 2 * BATCH
        np.save(os.path.join(folder, f"{mode}_data.npy"), np.random.randn(rows, SERIES).astype(np.float32))
        np.save(os.path.join(folder, f"{mode}_timestamps.npy"), np.random.rand(rows, 4).astype(np.float32))
    return folder


def ran(name, model=None, callback=(), loss="MAE", **more):
    """A step is an epoch, without what it validates and keeps."""

    def make():
        held = importlib.import_module(f"basicts.models.{name}")
        kinds = [each for each in vars(held).values() if isinstance(each, type)]
        config = next(each for each in kinds if each.__name__ == f"{name}Config")
        network = next((each for each in kinds if each.__name__ == f"{name}ForForecasting"), None) or getattr(
            held, name
        )
        fields = {each.name for each in dataclasses.fields(config)}
        settings = config(**{k: v for k, v in {**SMALL, **(model or {})}.items() if k in fields})
        set_device_type("gpu")
        cfg = BasicTSForecastingConfig(
            model=network,
            model_config=settings,
            dataset_name="own",
            dataset_params={
                "data_file_path": numbers(),
                "input_len": BEFORE,
                "output_len": AFTER,
                "use_timestamps": True,
            },
            gpus="0",
            batch_size=BATCH,
            num_epochs=1,
            loss=loss,
            callbacks=[each() for each in callback],
            ckpt_save_dir=tempfile.mkdtemp(),
            val_interval=10**6,
            test_interval=10**6,
            **more,
        )
        runner = BasicTSRunner(cfg)
        runner.on_train_start()
        runner.on_epoch_end = lambda *_: None
        runner.callback_handler.trigger("on_train_start", runner)

        def go():
            runner.start_step, runner.should_training_stop = 0, False
            runner._train_loop()

        return go

    return make


STEPS["d_linear"] = ran("DLinear")
STEPS["n_linear"] = ran("NLinear", loss="MSE")
STEPS["patches"] = ran("PatchTST")
STEPS["patches_halved"] = ran("PatchTST", model_dtype="bfloat16")
STEPS["patches_decomposed"] = ran(
    "PatchTST", {"decomp": True, "norm_type": "batch_norm"}, metrics=["MAE", "MSE", "WAPE"]
)
STEPS["inverted"] = ran("iTransformer")
STEPS["identities"] = ran("STID")
STEPS["informer"] = ran("Informer")
STEPS["autoformer"] = ran("Autoformer")
STEPS["crossformer"] = ran("Crossformer")
STEPS["times_net"] = ran("TimesNet")
STEPS["time_mixer"] = ran("TimeMixer")
STEPS["time_kan"] = ran("TimeKAN")
STEPS["non_stationary"] = ran("NonstationaryTransformer")
STEPS["stem"] = ran("StemGNN")
STEPS["segments"] = ran("SegRNN")
STEPS["sparse"] = ran("SparseTSF")
STEPS["frequencies"] = ran("FreTS")
STEPS["light"] = ran("LightTS")
STEPS["experts"] = ran("DUET", callback=[lambda: callbacks.AddAuxiliaryLoss()])
STEPS["mixed"] = ran("MTSMixer")
STEPS["exogenous"] = ran("TimeXer")
STEPS["clipped"] = ran("DLinear", callback=[lambda: callbacks.GradientClipping(1.0)])
STEPS["gathered"] = ran("DLinear", callback=[lambda: callbacks.GradAccumulation(2)])
STEPS["taught"] = ran("DLinear", callback=[lambda: callbacks.CurriculumLearning(AFTER)], metrics=["MAE", "SMAPE", "R2"])
STEPS["masked"] = ran("NLinear", null_val=0.0, rescale=True)
