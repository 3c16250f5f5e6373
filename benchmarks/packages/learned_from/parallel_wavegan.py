"""Training steps over parallel_wavegan 0.6.1: its `Trainer` runs over a loader of one batch."""

import sys
import tempfile
from unittest import mock

for absent in ("soundfile", "kaldiio", "h5py", "pysptk", "pyworld", "fastdtw"):
    sys.modules.setdefault(absent, mock.MagicMock())

import scipy.signal

scipy.signal.kaiser = scipy.signal.windows.kaiser  # where the package still looks for it

import parallel_wavegan.losses as L
import parallel_wavegan.models as M
from parallel_wavegan.bin.train import Collater, Trainer
from parallel_wavegan.layers import PQMF
from parallel_wavegan.optimizers import RAdam

HOP, MELS, FRAMES = 64, 20, 16
STFT = {"fft_sizes": [128, 256, 64], "hop_sizes": [16, 32, 8], "win_lengths": [64, 128, 32]}
SUBBAND = {"fft_sizes": [64, 32], "hop_sizes": [16, 8], "win_lengths": [32, 16]}
MEL = {"fs": 8000, "fft_size": 256, "hop_size": HOP, "num_mels": MELS, "fmin": 0, "fmax": 4000}


def spoken(features):
    """Pairs of audio and features, as the package's datasets give them."""
    return [(np.random.randn(32 * HOP).astype("float32") * 0.1, features()) for _ in range(2)]


def mels():
    return np.random.randn(32, MELS).astype("float32")


def trainer(generator, discriminator, data, collate, optimizer=torch.optim.Adam, **chosen):
    """A step is one pass over a loader that holds one batch."""
    config = {
        "outdir": tempfile.mkdtemp(),
        "rank": 0,
        "distributed": False,
        "train_max_steps": 1000000,
        "discriminator_train_start_steps": 0,
        "log_interval_steps": 1000,
        "eval_interval_steps": 100000,
        "save_interval_steps": 100000,
        "generator_grad_norm": 10,
        "discriminator_grad_norm": 1,
        "lambda_adv": 4.0,
        "lambda_aux": 1.0,
        "lambda_feat_match": 2.0,
        "lambda_commit": 0.25,
        "use_stft_loss": True,
        "use_subband_stft_loss": False,
        "use_mel_loss": False,
        "use_feat_match_loss": False,
        "generator_type": type(generator).__name__,
        "generator_params": {"in_channels": 1, "out_channels": 1},
        **chosen,
    }
    device = torch.device(D)
    kind = config.get("adversarial", "mse")
    criterion = {
        "gen_adv": L.GeneratorAdversarialLoss(loss_type=kind).to(device),
        "dis_adv": L.DiscriminatorAdversarialLoss(loss_type=kind).to(device),
        "stft": L.MultiResolutionSTFTLoss(**STFT).to(device),
        "sub_stft": L.MultiResolutionSTFTLoss(**SUBBAND).to(device),
        "mel": L.MelSpectrogramLoss(**MEL).to(device),
        "feat_match": L.FeatureMatchLoss().to(device),
        "duration": L.DurationPredictorLoss().to(device),
        "mse": torch.nn.MSELoss().to(device),
        "pqmf": PQMF(subbands=4).to(device),
    }
    model = {"generator": generator.to(device), "discriminator": discriminator.to(device)}
    optimizers = {name: optimizer(net.parameters(), 1e-4) for name, net in model.items()}
    schedulers = {name: torch.optim.lr_scheduler.StepLR(each, 1000) for name, each in optimizers.items()}
    loader = {"train": torch.utils.data.DataLoader(data, batch_size=2, shuffle=True, collate_fn=collate)}
    training = Trainer(1, 0, loader, {"train": None}, model, criterion, optimizers, schedulers, config, device)
    training.tqdm = mock.MagicMock()
    return training._train_epoch


def audio_and_mels(**more):
    return Collater(batch_max_steps=FRAMES * HOP, hop_size=HOP, aux_context_window=0, **more)


def hifigan(**more):
    return M.HiFiGANGenerator(
        in_channels=MELS,
        channels=16,
        upsample_scales=(8, 8),
        upsample_kernel_sizes=(16, 16),
        resblock_kernel_sizes=(3, 7),
        resblock_dilations=[(1, 3), (1, 3)],
        **more,
    )


def many_discriminators(**more):
    period = {"channels": 4, "max_downsample_channels": 16, "downsample_scales": [3, 3, 1], **more}
    scale = {"channels": 16, "max_downsample_channels": 32, "max_groups": 4, "downsample_scales": [2, 2, 1]}
    return M.HiFiGANMultiScaleMultiPeriodDiscriminator(
        scales=2, scale_discriminator_params=scale, periods=[2, 3, 5], period_discriminator_params=period
    )


def melgan(**more):
    scales = {"channels": 64, "upsample_scales": [8, 8], "stacks": 2, **more}
    return M.MelGANGenerator(in_channels=MELS, **scales)


def multi_scale():
    return M.MelGANMultiScaleDiscriminator(channels=4, max_downsample_channels=16, downsample_scales=[4, 4])


def wavegan(**more):
    return M.ParallelWaveGANGenerator(
        layers=6,
        stacks=3,
        residual_channels=8,
        gate_channels=16,
        skip_channels=8,
        aux_channels=MELS,
        upsample_params={"upsample_scales": [8, 8]},
        **{"aux_context_window": 0, **more},
    )


@step
def parallel_wavegan():
    discriminator = M.ParallelWaveGANDiscriminator(layers=4, conv_channels=8)
    return trainer(wavegan(), discriminator, spoken(mels), audio_and_mels(use_noise_input=True), optimizer=RAdam)


@step
def parallel_wavegan_residual_causal():
    discriminator = M.ResidualParallelWaveGANDiscriminator(
        layers=6, stacks=3, residual_channels=8, gate_channels=16, skip_channels=8
    )
    collate = Collater(FRAMES * HOP, HOP, aux_context_window=2, use_noise_input=True)
    generator = wavegan(use_causal_conv=True, aux_context_window=2, dropout=0.1)
    return trainer(generator, discriminator, spoken(mels), collate)


@step
def parallel_wavegan_before_the_discriminator():
    discriminator = M.ParallelWaveGANDiscriminator(layers=4, conv_channels=8)
    collate = audio_and_mels(use_noise_input=True)
    return trainer(wavegan(), discriminator, spoken(mels), collate, discriminator_train_start_steps=100000)


@step
def melgan_feature_matching():
    return trainer(
        melgan(), multi_scale(), spoken(mels), audio_and_mels(), use_feat_match_loss=True, lambda_feat_match=10.0
    )


@step
def melgan_causal_hinge():
    return trainer(melgan(use_causal_conv=True), multi_scale(), spoken(mels), audio_and_mels(), adversarial="hinge")


@step
def multi_band_melgan():
    return trainer(
        melgan(out_channels=4, upsample_scales=[4, 4]),
        multi_scale(),
        spoken(mels),
        audio_and_mels(),
        use_subband_stft_loss=True,
        generator_params={"in_channels": MELS, "out_channels": 4},
    )


@step
def hifigan_recipe():
    return trainer(
        hifigan(),
        many_discriminators(),
        spoken(mels),
        audio_and_mels(),
        use_stft_loss=False,
        use_mel_loss=True,
        use_feat_match_loss=True,
        lambda_aux=45.0,
        generator_grad_norm=-1,
        discriminator_grad_norm=-1,
    )


@step
def hifigan_spectral_norm():
    return trainer(
        hifigan(use_causal_conv=True, use_additional_convs=False),
        many_discriminators(use_weight_norm=False, use_spectral_norm=True),
        spoken(mels),
        audio_and_mels(),
        use_mel_loss=True,
        update_prediction_after_generator_update=False,
    )


@step
def hifigan_multi_scale():
    scale = {"channels": 16, "max_downsample_channels": 32, "max_groups": 4, "downsample_scales": [2, 2, 1]}
    discriminator = M.HiFiGANMultiScaleDiscriminator(scales=2, discriminator_params=scale, follow_official_norm=True)
    return trainer(hifigan(), discriminator, spoken(mels), audio_and_mels(), use_feat_match_loss=True)


@step
def hifigan_multi_period():
    period = {"channels": 4, "max_downsample_channels": 16, "downsample_scales": [3, 3, 1]}
    discriminator = M.HiFiGANMultiPeriodDiscriminator(periods=[2, 3], discriminator_params=period)
    return trainer(hifigan(), discriminator, spoken(mels), audio_and_mels(), adversarial="hinge", log_interval_steps=1)


def windows():
    return M.StyleMelGANDiscriminator(
        repeats=2,
        window_sizes=[256, 512],
        pqmf_params=[[1, None, None, None], [2, 62, 0.267, 9.0]],
        discriminator_params={
            "out_channels": 1,
            "kernel_sizes": [5, 3],
            "channels": 4,
            "max_downsample_channels": 16,
            "downsample_scales": [4, 4],
            "nonlinear_activation": "LeakyReLU",
            "nonlinear_activation_params": {"negative_slope": 0.2},
            "pad": "ReflectionPad1d",
            "pad_params": {},
        },
    )


STYLE = {
    "in_channels": 16,
    "channels": 8,
    "noise_upsample_scales": [4, 4],
    "upsample_scales": [4, 4, 4, 1],
}


@step
def style_melgan():
    generator = M.StyleMelGANGenerator(aux_channels=MELS, **STYLE)
    return trainer(generator, windows(), spoken(mels), audio_and_mels())


@step
def style_melgan_sigmoid():
    generator = M.StyleMelGANGenerator(aux_channels=MELS, gated_function="sigmoid", **STYLE)
    return trainer(generator, windows(), spoken(mels), audio_and_mels(), use_mel_loss=True, adversarial="hinge")


def vqvae(**more):
    return M.VQVAE(
        num_embeds=32,
        embed_dim=16,
        encoder_conf={"out_channels": 16, "channels": 4, "downsample_scales": [8, 8], "max_downsample_channels": 16},
        **more,
    )


def vqvae_decoder(inputs):
    return {"in_channels": inputs, "upsample_scales": [8, 8], "channels": 64, "stacks": 2}


@step
def vqvae_audio():
    sounds = [np.random.randn(32 * HOP).astype("float32") * 0.1 for _ in range(2)]
    collate = Collater(FRAMES * HOP, HOP, use_aux_input=False)
    return trainer(vqvae(decoder_conf=vqvae_decoder(16)), multi_scale(), sounds, collate)


@step
def vqvae_speakers():
    sounds = [(np.random.randn(32 * HOP).astype("float32") * 0.1, np.array(i % 3)) for i in range(2)]
    collate = Collater(FRAMES * HOP, HOP, use_aux_input=False, use_global_condition=True)
    generator = vqvae(num_global_embeds=4, global_embed_dim=8, decoder_conf=vqvae_decoder(24))
    return trainer(generator, multi_scale(), sounds, collate, use_feat_match_loss=True)


@step
def vqvae_local_features():
    sounds = [(*each, np.array(i % 3)) for i, each in enumerate(spoken(mels))]
    collate = Collater(
        FRAMES * HOP,
        HOP,
        aux_context_window=0,
        use_aux_input=False,
        use_local_condition=True,
        use_global_condition=True,
    )
    generator = vqvae(
        num_local_embeds=MELS,
        local_embed_dim=8,
        num_global_embeds=4,
        global_embed_dim=8,
        decoder_conf=vqvae_decoder(32),
    )
    return trainer(generator, multi_scale(), sounds, collate)


def units():
    """Discrete units of speech, each a few frames long."""
    return np.repeat(np.random.randint(0, 30, (16, 1)), 2, axis=0)


SYMBOLS = {
    "in_channels": 16,
    "channels": 16,
    "num_embs": 30,
    "upsample_scales": (8, 8),
    "upsample_kernel_sizes": (16, 16),
    "resblock_kernel_sizes": (3, 7),
    "resblock_dilations": [(1, 3), (1, 3)],
}


@step
def units_to_audio():
    generator = M.DiscreteSymbolHiFiGANGenerator(num_spk_embs=0, **SYMBOLS)
    chosen = {"use_stft_loss": False, "use_mel_loss": True, "use_feat_match_loss": True}
    return trainer(generator, many_discriminators(), spoken(units), audio_and_mels(), **chosen)


@step
def units_of_speakers_to_audio():
    def speech():
        return np.concatenate([units(), np.full((32, 1), np.random.randint(4))], axis=1)

    generator = M.DiscreteSymbolHiFiGANGenerator(num_spk_embs=4, spk_emb_dim=16, **SYMBOLS)
    return trainer(generator, many_discriminators(), spoken(speech), audio_and_mels(), use_mel_loss=True)


@step
def units_of_unknown_length():
    collate = audio_and_mels(use_duration=True, use_f0_and_excitation=True)
    collate._adjust_length = lambda *given: given

    sounds = [(*each, np.zeros(32), np.zeros(32)) for each in spoken(units)]
    generator = M.DiscreteSymbolDurationGenerator(num_spk_embs=0, duration_chans=16, **SYMBOLS)
    return trainer(generator, many_discriminators(), sounds, collate, use_stft_loss=False, use_mel_loss=True)


@step
def singing_by_uhifigan():
    def collate(batch):
        audio, features = (torch.from_numpy(np.stack(each)) for each in zip(*batch, strict=True))
        audio, features = audio[:, None, : FRAMES * HOP], features[:, :FRAMES].transpose(1, 2)
        pitch = 200 + 50 * torch.rand(len(audio), 1, FRAMES)
        return (features, pitch, torch.randn(len(audio), 1, FRAMES * HOP)), audio

    generator = M.UHiFiGANGenerator(
        in_channels=MELS,
        channels=16,
        downsample_scales=(8, 8),
        downsample_kernel_sizes=(16, 16),
        upsample_scales=(8, 8),
        upsample_kernel_sizes=(16, 16),
        resblock_kernel_sizes=(3, 7),
        resblock_dilations=[(1, 3), (1, 3)],
    )
    return trainer(generator, many_discriminators(), spoken(mels), collate, use_mel_loss=True)
