"""Training steps over SpeechBrain 1.1.2: its Brain over recognizers, speakers, separation, enhancement, speech made and pretrained."""

import speechbrain as sb
from speechbrain.augment import freq_domain, time_domain
from speechbrain.augment.augmenter import Augmenter
from speechbrain.dataio.batch import PaddedBatch
from speechbrain.dataio.dataio import length_to_mask
from speechbrain.lobes.features import MFCC, Fbank
from speechbrain.lobes.models import (
    CRDNN,
    ECAPA_TDNN,
    ContextNet,
    HifiGAN,
    MetricGAN,
    Tacotron2,
    Xvector,
    conv_tasnet,
    dual_path,
)
from speechbrain.lobes.models import FastSpeech2 as fastspeech
from speechbrain.lobes.models import wav2vec
from speechbrain.lobes.models.ResNet import ResNet
from speechbrain.lobes.models.RNNLM import RNNLM
from speechbrain.lobes.models.transformer.Transformer import TransformerEncoder
from speechbrain.lobes.models.transformer.TransformerASR import TransformerASR
from speechbrain.lobes.models.transformer.TransformerLM import TransformerLM
from speechbrain.nnet import losses, schedulers
from speechbrain.nnet.embedding import Embedding
from speechbrain.nnet.linear import Linear
from speechbrain.nnet.quantisers import RandomProjectionQuantizer
from speechbrain.nnet.RNN import GRU, LSTM, AttentionalRNNDecoder, LiGRU
from speechbrain.processing.features import STFT, GlobalNorm, InputNormalization, spectral_magnitude

BATCH, CLASSES, WORDS = 4, 6, 12


def batch(**held):
    """A batch as its loaders collate one: what is of many lengths is padded, and knows them."""
    return PaddedBatch([{"id": str(i), **{key: make(i) for key, make in held.items()}} for i in range(BATCH)])


def wav(i, length=4000):
    return torch.randn(length + 200 * i)


def token(i):
    return torch.randint(1, WORDS, (4 + i,))


def speaker(_):
    return torch.randint(CLASSES, (1,))


def trained(modules, forward, batches, schedule=None, **options):
    """A step is an epoch of two batches in a Brain: `forward(modules, batch)` gives the loss."""

    class Each(sb.Brain):
        def compute_forward(self, given, stage):
            return forward(self.modules, given.to(self.device), self)

        def compute_objectives(self, predictions, given, stage):
            return predictions

        def on_fit_batch_end(self, *_):
            if schedule is not None:
                schedule(self.optimizer)

    brain = Each(modules, lambda x: torch.optim.Adam(x, 1e-4), run_opts={"device": D, "noprogressbar": True, **options})
    brain.on_fit_start()

    def go():
        held = [batches(), batches()]
        brain.modules.train()
        for each in held:
            brain.step += 1
            brain.avg_train_loss = brain.update_average(brain.fit_batch(each), brain.avg_train_loss)

    return go


def speech():
    return batch(sig=wav, spk=speaker, tokens=token)


def speakers(network, head, loss, features=None, norm=None, augment=None, spectral=None):
    """A recognizer of speakers: augmented waves, features, their norms, an embedding and a margin."""

    def make():
        modules = {
            "features": features() if features else Fbank(n_mels=24),
            "norm": norm() if norm else InputNormalization(norm_type="sentence", std_norm=False),
            "embed": network(),
            "head": head(),
        }
        augmented = Augmenter(augmentations=[each() for each in augment], **AUGMENTED) if augment else None
        dropped = spectral() if spectral else None

        def forward(net, given, _):
            waves, lengths = given.sig
            who = given.spk.data
            if augmented is not None:
                waves, lengths = augmented(waves, lengths)
                who = augmented.replicate_labels(who)
            feats = net.norm(net.features(waves), lengths)
            if dropped is not None:
                feats = (
                    dropped(feats) if not isinstance(dropped, freq_domain.RandomShift) else dropped(feats, lengths)[0]
                )
            return loss(net.head(net.embed(feats, lengths)), who)

        return trained(modules, forward, speech)

    return make


AUGMENTED = {"min_augmentations": 1, "max_augmentations": 1, "concat_original": True}


def ecapa():
    return ECAPA_TDNN.ECAPA_TDNN(
        24, channels=[16] * 4 + [48], attention_channels=8, lin_neurons=8, se_channels=8, res2net_scale=4
    )


def cosine():
    return ECAPA_TDNN.Classifier(8, lin_neurons=8, out_neurons=CLASSES)


AAM = losses.LogSoftmaxWrapper(losses.AdditiveAngularMargin(0.2, 30))
STEPS["ecapa"] = speakers(ecapa, cosine, AAM)
STEPS["ecapa_of_a_plain_margin"] = speakers(ecapa, cosine, losses.LogSoftmaxWrapper(losses.AngularMargin(0.1, 10)))
STEPS["ecapa_of_an_easy_margin"] = speakers(
    ecapa, cosine, losses.LogSoftmaxWrapper(losses.AdditiveAngularMargin(0.2, 30, easy_margin=True))
)


def xvector():
    return Xvector.Xvector(
        tdnn_blocks=3,
        tdnn_channels=[16, 16, 16],
        tdnn_kernel_sizes=[5, 3, 1],
        tdnn_dilations=[1, 2, 1],
        lin_neurons=8,
        in_channels=24,
    )


def linear():
    return Xvector.Classifier([None, None, 8], lin_blocks=1, lin_neurons=8, out_neurons=CLASSES)


STEPS["xvector"] = speakers(xvector, linear, losses.nll_loss)
STEPS["resnet"] = speakers(lambda: ResNet(24, channels=[8, 8, 8, 8], lin_neurons=8), cosine, AAM)
STEPS["mfcc"] = speakers(
    lambda: ECAPA_TDNN.ECAPA_TDNN(
        660, channels=[16] * 4 + [48], attention_channels=8, lin_neurons=8, se_channels=8, res2net_scale=4
    ),
    cosine,
    AAM,
    MFCC,
)
for each in ("global", "batch", "sentence"):
    STEPS[f"norm_{each}"] = speakers(ecapa, cosine, AAM, norm=lambda each=each: InputNormalization(norm_type=each))
STEPS["norm_without_padding"] = speakers(
    ecapa, cosine, AAM, norm=lambda: InputNormalization(norm_type="global", avoid_padding_norm=True)
)
STEPS["norm_of_all"] = speakers(ecapa, cosine, AAM, norm=lambda: GlobalNorm(length_dim=1))
t = time_domain
WAVES = {
    "noise": lambda: t.AddNoise(snr_low=0, snr_high=15, normalize=True),
    "speed": lambda: t.SpeedPerturb(16000, [95, 100, 105]),
    "resampled": lambda: t.Resample(16000, 8000),
    "dropped_frequencies": lambda: t.DropFreq(drop_freq_count_low=2),
    "dropped_chunks": lambda: t.DropChunk(drop_length_high=500, drop_count_low=2, noise_factor=0.1),
    "chunks_dropped_fast": lambda: t.FastDropChunk(drop_length_high=500, n_masks=20),
    "clipped": t.DoClip,
    "amplified": t.RandAmp,
    "segments_swapped": t.CutCat,
    "dropped_bits": t.DropBitResolution,
    "flipped": t.SignFlip,
}
for name, each in WAVES.items():
    STEPS[f"augmented_by_{name}"] = speakers(ecapa, cosine, AAM, augment=[each])
STEPS["augmented_by_many"] = speakers(
    ecapa, cosine, AAM, augment=[WAVES["noise"], WAVES["dropped_chunks"], WAVES["clipped"]]
)
STEPS["spectrogram_drop"] = speakers(ecapa, cosine, AAM, spectral=freq_domain.SpectrogramDrop)
STEPS["spectrogram_drop_in_frequency"] = speakers(
    ecapa, cosine, AAM, spectral=lambda: freq_domain.SpectrogramDrop(dim=2, drop_length_high=8, replace="mean")
)
STEPS["spectrogram_swap"] = speakers(ecapa, cosine, AAM, spectral=lambda: freq_domain.SpectrogramDrop(replace="swap"))
STEPS["warped"] = speakers(ecapa, cosine, AAM, spectral=freq_domain.Warping)
STEPS["shifted"] = speakers(ecapa, cosine, AAM, spectral=lambda: freq_domain.RandomShift(max_shift=3))


def labels(given):
    """The tokens with a first and a last one, and without."""
    tokens, lengths = given.tokens
    first = torch.nn.functional.pad(tokens, (1, 0), value=1)
    return tokens, lengths, first, torch.nn.functional.pad(tokens, (0, 1), value=2), lengths


def crdnn(rnn=LiGRU):
    return CRDNN.CRDNN(
        input_shape=[None, None, 24],
        cnn_blocks=1,
        cnn_channels=[8],
        inter_layer_pooling_size=[2],
        rnn_class=rnn,
        rnn_layers=1,
        rnn_neurons=8,
        rnn_bidirectional=True,
        dnn_blocks=1,
        dnn_neurons=16,
    )


def ctc(encoder, width, more=None):
    def make():
        modules = {
            "features": Fbank(n_mels=24),
            "norm": InputNormalization(norm_type="global"),
            "encode": encoder(),
            "out": Linear(input_size=width, n_neurons=WORDS),
        }

        def forward(net, given, brain):
            waves, lengths = given.sig
            feats = net.norm(net.features(waves), lengths, epoch=1)
            encoded = net.encode(feats)
            scores = net.out(encoded[0] if isinstance(encoded, tuple) else encoded).log_softmax(-1)
            tokens, token_lengths = given.tokens
            return losses.ctc_loss(scores, tokens, lengths, token_lengths, blank_index=0, **(more or {}))

        return trained(modules, forward, speech)

    return make


STEPS["crdnn_ctc"] = ctc(crdnn, 16)
STEPS["crdnn_lstm_ctc"] = ctc(lambda: crdnn(LSTM), 16, {"reduction": "batchmean"})
STEPS["gru_ctc"] = ctc(lambda: GRU(8, input_shape=[None, None, 24], bidirectional=True), 16, {"reduction": "sum"})
STEPS["contextnet_ctc"] = ctc(
    lambda: ContextNet.ContextNet(
        [None, None, 24],
        out_channels=8,
        conv_channels=[8] * 3 + [16],
        kernel_size=3,
        strides=[1] * 4,
        num_blocks=4,
        num_layers=2,
    ),
    8,
)


@step
def attention_and_ctc():
    """Recognition of words by attention, and by alignment beside it."""
    decoder = AttentionalRNNDecoder("gru", "location", 8, 8, 1, 16, 8, channels=4, kernel_size=5)
    modules = {
        "features": Fbank(n_mels=24),
        "encode": crdnn(),
        "embed": Embedding(num_embeddings=WORDS, embedding_dim=8),
        "decode": decoder,
        "out": Linear(input_size=8, n_neurons=WORDS),
        "ctc": Linear(input_size=16, n_neurons=WORDS),
    }

    def forward(net, given, _):
        waves, lengths = given.sig
        tokens, token_lengths, first, last, _ = labels(given)
        encoded = net.encode(net.features(waves))
        decoded, _ = net.decode(net.embed(first), encoded, lengths)
        words = net.out(decoded).log_softmax(-1)
        seq = losses.nll_loss(words, last, length=token_lengths, label_smoothing=0.1)
        return 0.5 * seq + 0.5 * losses.ctc_loss(net.ctc(encoded).log_softmax(-1), tokens, lengths, token_lengths, 0)

    return trained(modules, forward, speech)


def transformer(encoder="transformer", attention="regularMHA", noam=True, smoothing=0.1, **more):
    def make():
        net = TransformerASR(
            WORDS,
            24,
            d_model=16,
            nhead=2,
            num_encoder_layers=1,
            num_decoder_layers=1,
            d_ffn=16,
            encoder_module=encoder,
            attention_type=attention,
            normalize_before=True,
            kernel_size=7,
            **more,
        )
        modules = {
            "features": Fbank(n_mels=24),
            "norm": InputNormalization(norm_type="global"),
            "net": net,
            "out": Linear(input_size=16, n_neurons=WORDS),
            "ctc": Linear(input_size=16, n_neurons=WORDS),
        }
        warm = schedulers.NoamScheduler(1e-3, 100) if noam else None

        def forward(net, given, _):
            waves, lengths = given.sig
            tokens, token_lengths, first, last, _ = labels(given)
            encoded, decoded = net.net(net.norm(net.features(waves), lengths, epoch=1), first, lengths, pad_idx=0)
            words = net.out(decoded).log_softmax(-1)
            seq = losses.kldiv_loss(words, last, length=token_lengths, label_smoothing=smoothing)
            return 0.7 * seq + 0.3 * losses.ctc_loss(
                net.ctc(encoded).log_softmax(-1), tokens, lengths, token_lengths, 0
            )

        return trained(modules, forward, speech, warm, grad_accumulation_factor=2)

    return make


STEPS["transformer"] = transformer()
STEPS["transformer_without_smoothing"] = transformer(smoothing=0.0, noam=False)
STEPS["conformer"] = transformer("conformer", "RelPosMHAXL")
STEPS["conformer_causal"] = transformer("conformer", "RelPosMHAXL", causal=True)
STEPS["branchformer"] = transformer("branchformer", "RelPosMHAXL", csgu_linear_units=16)
STEPS["hypermixing"] = transformer("conformer", "hypermixing")


def language(network):
    def make():
        def forward(net, given, _):
            tokens, lengths, first, last, _ = labels(given)
            scores = net.net(first)
            scores = scores[0] if isinstance(scores, tuple) else scores
            return losses.nll_loss(scores.log_softmax(-1), last, length=lengths)

        return trained({"net": network()}, forward, lambda: batch(tokens=token))

    return make


STEPS["language_of_rnn"] = language(lambda: RNNLM(WORDS, embedding_dim=8, rnn_neurons=8, rnn_layers=1, dnn_neurons=8))
STEPS["language_of_transformer"] = language(
    lambda: TransformerLM(WORDS, d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=0, d_ffn=16)
)


def mixture():
    return batch(s1=lambda _: torch.randn(1600), s2=lambda _: torch.randn(1600))


def separated(mask, encoder=None, decoder=None, loss=losses.get_si_snr_with_pitwrapper, threshold=False):
    def make():
        modules = {
            "encode": encoder() if encoder else dual_path.Encoder(16, 8),
            "mask": mask(),
            "decode": decoder() if decoder else dual_path.Decoder(8, 1, 16, 8, bias=False),
        }

        def forward(net, given, _):
            sources = torch.stack([given.s1.data, given.s2.data], -1)
            mixed = net.encode(sources.sum(-1))
            masks = net.mask(mixed)
            made = torch.cat([net.decode(mixed * masks[i]).unsqueeze(-1) for i in range(2)], -1)
            length = min(made.shape[1], sources.shape[1])
            value = loss(sources[:, :length], made[:, :length])
            if threshold:  # as its recipes leave out what is good enough
                keep = value[value > -30]
                return keep.mean() if keep.nelement() > 0 else value.mean()
            return value.mean()

        return trained(modules, forward, mixture)

    return make


def dual(block, **more):
    return lambda: dual_path.Dual_Path_Model(8, 8, block(), block(), num_spks=2, num_layers=1, K=20, norm="ln", **more)


STEPS["sepformer"] = separated(dual(lambda: dual_path.SBTransformerBlock(1, 8, 2, 16)), threshold=True)
STEPS["sepformer_of_conformers"] = separated(dual(lambda: dual_path.SBConformerEncoderBlock(1, 8, 2, 16)))
STEPS["dprnn"] = separated(
    dual(lambda: dual_path.SBRNNBlock(8, 8, 1, bidirectional=True), linear_layer_after_inter_intra=True)
)
STEPS["dptnet"] = separated(dual(lambda: dual_path.DPTNetBlock(8, 2)), loss=losses.get_snr_with_pitwrapper)
STEPS["convtasnet"] = separated(
    lambda: conv_tasnet.MaskNet(N=8, B=8, H=16, P=3, X=2, R=1, C=2), lambda: dual_path.Encoder(16, 8)
)
STEPS["convtasnet_causal"] = separated(
    lambda: conv_tasnet.MaskNet(
        N=8, B=8, H=16, P=3, X=2, R=1, C=2, norm_type="cLN", causal=True, mask_nonlinear="softmax"
    )
)


@step
def permutations():
    """The best of all orders, of any loss."""
    net = {"net": torch.nn.Conv1d(1, 2, 5, padding=2)}
    pit = losses.PitWrapper(torch.nn.MSELoss(reduction="none"))

    def forward(net, given, _):
        sources = torch.stack([given.s1.data, given.s2.data], -1)
        value, _ = pit(net.net(sources.sum(-1).unsqueeze(1)).transpose(1, 2), sources)
        return value.mean()

    return trained(net, forward, mixture)


def noisy():
    return batch(noisy=wav, clean=wav)


def enhanced(loss):
    def make():
        modules = {
            "stft": STFT(16000, n_fft=512, win_length=32, hop_length=16),
            "net": MetricGAN.EnhancementGenerator(),
        }

        def forward(net, given, _):
            waves, lengths = given.noisy
            spec, clean = (torch.log1p(spectral_magnitude(net.stft(x), power=0.5)) for x in (waves, given.clean.data))
            return loss(spec * net.net(spec, lengths=lengths), clean, lengths)

        return trained(modules, forward, noisy)

    return make


STEPS["enhancement"] = enhanced(losses.mse_loss)
STEPS["enhancement_l1"] = enhanced(losses.l1_loss)
STEPS["enhancement_binary"] = enhanced(lambda x, y, lengths: losses.bce_loss(x, y.clamp(0, 1), lengths))
STEPS["enhancement_by_distance"] = enhanced(
    lambda x, y, lengths: losses.compute_masked_loss(
        torch.nn.SmoothL1Loss(reduction="none"), x, y, lengths, reduction="batchmean"
    )
)


@step
def metric_gan():
    """Its discriminator, which learns a metric from scores."""
    net = {"net": MetricGAN.MetricDiscriminator(base_channels=4)}

    def forward(net, given, _):
        scores = torch.rand(BATCH, 1, device=D)
        pair = torch.stack([given.a.data, given.b.data], 1)
        return losses.mse_loss(net.net(pair), scores)

    picture = lambda _: torch.rand(40, 257)  # noqa: E731
    return trained(net, forward, lambda: batch(a=picture, b=picture))


def spoken():
    """Phones, how long each is, and the spectrum that comes of it."""
    phones, spectra = [], []
    for i in range(BATCH):
        durations = torch.randint(3, 6, (5 + i,))
        frames = int(durations.sum())
        phones.append({"phones": torch.randint(1, WORDS, (5 + i,)), "durations": durations})
        spectra.append({"mel": torch.randn(frames, 16), "pitch": torch.rand(frames), "energy": torch.rand(frames)})
    return PaddedBatch([{"id": str(i), **one, **two} for i, (one, two) in enumerate(zip(phones, spectra))])


def lengths_of(padded):
    return (padded.lengths * padded.data.shape[1]).round().long()


@step
def tacotron():
    net = Tacotron2.Tacotron2(
        n_mel_channels=16,
        n_symbols=WORDS,
        symbols_embedding_dim=8,
        encoder_n_convolutions=1,
        encoder_embedding_dim=8,
        attention_rnn_dim=8,
        attention_dim=8,
        attention_location_n_filters=4,
        attention_location_kernel_size=5,
        decoder_rnn_dim=8,
        prenet_dim=8,
        postnet_embedding_dim=8,
        postnet_n_convolutions=2,
    )
    criterion = Tacotron2.Loss(guided_attention_sigma=0.2, guided_attention_weight=50.0, guided_attention_hard_stop=50)

    def forward(net, given, _):
        phones, frames = lengths_of(given.phones), lengths_of(given.mel)
        order = phones.argsort(descending=True)
        mel = given.mel.data[order].transpose(1, 2)
        out = net.net((given.phones.data[order], phones[order], mel, mel.size(2), frames[order]))
        return criterion(
            out, (mel, torch.zeros(mel.shape[0], mel.shape[2], device=D)), phones[order], frames[order], 1
        ).loss

    return trained({"net": net}, forward, spoken)


FASTSPEECH = {
    "enc_num_layers": 1,
    "enc_num_head": 1,
    "enc_d_model": 8,
    "enc_ffn_dim": 8,
    "enc_k_dim": 8,
    "enc_v_dim": 8,
    "enc_dropout": 0.1,
    "dec_num_layers": 1,
    "dec_num_head": 1,
    "dec_d_model": 8,
    "dec_ffn_dim": 8,
    "dec_k_dim": 8,
    "dec_v_dim": 8,
    "dec_dropout": 0.1,
    "normalize_before": False,
    "ffn_type": "1dcnn",
    "ffn_cnn_kernel_size_list": [3, 1],
    "n_char": WORDS,
    "n_mels": 16,
    "postnet_embedding_dim": 8,
    "postnet_kernel_size": 5,
    "postnet_n_convolutions": 2,
    "postnet_dropout": 0.5,
    "padding_idx": 0,
    "dur_pred_kernel_size": 3,
    "pitch_pred_kernel_size": 3,
    "energy_pred_kernel_size": 3,
    "variance_predictor_dropout": 0.5,
}
WEIGHTS = {
    "log_scale_durations": True,
    "ssim_loss_weight": 1.0,
    "duration_loss_weight": 1.0,
    "pitch_loss_weight": 1.0,
    "energy_loss_weight": 1.0,
    "mel_loss_weight": 1.0,
    "postnet_mel_loss_weight": 1.0,
}


@step
def fast_speech():
    criterion = fastspeech.Loss(**WEIGHTS)
    silences = fastspeech.SPNPredictor(1, 1, 8, 8, 8, 8, 0.1, False, "1dcnn", [3, 1], WORDS, 0)

    def forward(net, given, _):
        phones, durations = given.phones.data, given.durations.data
        pitch, energy = given.pitch.data, given.energy.data
        out = net.net(phones, durations, pitch, energy)
        last = torch.zeros_like(phones)
        quiet = net.silences(phones, last)
        wanted = (
            given.mel.data,
            durations,
            given.pitch.data,
            given.energy.data,
            lengths_of(given.mel),
            lengths_of(given.phones),
            last.float(),
        )
        return criterion((*out, quiet), wanted, 1)["total_loss"]

    return trained({"net": fastspeech.FastSpeech2(**FASTSPEECH), "silences": silences}, forward, spoken)


@step
def fast_speech_with_alignment():
    criterion = fastspeech.LossWithAlignment(
        **WEIGHTS,
        aligner_loss_weight=1.0,
        binary_alignment_loss_weight=0.2,
        binary_alignment_loss_warmup_epochs=1,
        binary_alignment_loss_max_epochs=80,
    )
    net = fastspeech.FastSpeech2WithAlignment(
        **FASTSPEECH, in_query_channels=16, in_key_channels=8, attn_channels=8, temperature=0.0005
    )

    def forward(net, given, _):
        pitch, energy = given.pitch.data, given.energy.data
        out = net.net(given.phones.data, given.mel.data, pitch, energy)
        wanted = (given.mel.data, given.pitch.data, given.energy.data, lengths_of(given.mel), lengths_of(given.phones))
        return criterion(out, wanted, 2)["total_loss"]

    return trained({"net": net}, forward, spoken)


def vocoder(unit=False):
    def make():
        small = {
            "out_channels": 1,
            "resblock_type": "1",
            "resblock_dilation_sizes": [[1, 3, 5]] * 2,
            "resblock_kernel_sizes": [3, 5],
            "upsample_kernel_sizes": [16, 16],
            "upsample_initial_channel": 16,
            "upsample_factors": [8, 8],
        }
        if unit:
            net = HifiGAN.UnitHifiganGenerator(
                in_channels=8,
                **small,
                vocab_size=20,
                embedding_dim=8,
                duration_predictor=True,
                var_pred_hidden_dim=8,
                var_pred_kernel_size=3,
                var_pred_dropout=0.5,
            )
        else:
            net = HifiGAN.HifiganGenerator(in_channels=8, **small)
        critic = HifiGAN.HifiganDiscriminator()
        for each in critic.modules():
            if isinstance(each, torch.nn.Conv1d | torch.nn.Conv2d):
                each.requires_grad_(True)
        net, critic = net.to(D), critic.to(D)
        loss = HifiGAN.GeneratorLoss(
            None,
            0,
            HifiGAN.MSEGLoss(),
            1.0,
            HifiGAN.MelganFeatureLoss(),
            10.0,
            HifiGAN.L1SpecLoss(n_fft=256, hop_length=64, win_length=256, n_mel_channels=8, n_stft=129),
            45.0,
            torch.nn.MSELoss() if unit else None,
            1.0 if unit else 0,
        ).to(D)
        critical = HifiGAN.DiscriminatorLoss(HifiGAN.MSEDLoss()).to(D)
        ours, theirs = (torch.optim.AdamW(each.parameters(), 2e-4) for each in (net, critic))

        def go():
            x = torch.randint(0, 20, (2, 32, 1)).to(D) if unit else torch.randn(2, 8, 32).to(D)
            y = torch.randn(2, 1, 2048).to(D)
            made, durations = net(x) if unit else (net(x), (None, None))
            length = min(made.shape[-1], y.shape[-1])
            made, y = made[..., :length], y[..., :length]
            fake, _ = critic(made.detach())
            real, features = critic(y)
            value = critical(fake, real)["D_loss"]
            theirs.zero_grad()
            value.backward()
            theirs.step()
            fake, drawn = critic(made)
            _, features = critic(y)
            value = loss(sb.Stage.TRAIN, made, y, fake, drawn, features, *durations)["G_loss"]
            ours.zero_grad()
            value.backward()
            ours.step()

        return go

    return make


STEPS["hifigan"] = vocoder()
STEPS["hifigan_of_units"] = vocoder(True)


@step
def wav2vec_pretraining():
    modules = {
        "extract": wav2vec.W2VLatentExtractor([16] * 3, [11, 3, 3], [5, 2, 2]),
        "quantise": wav2vec.W2VTargetQuantiser(in_dim=16, out_dim=8, num_vars=8),
        "encode": wav2vec.EncoderWrapper(16, 8, TransformerEncoder(d_model=8, num_layers=1, nhead=2, d_ffn=16)),
        "project": Linear(input_size=8, n_neurons=8),
    }
    contrast = losses.ContrastiveLoss(0.1)
    extract = modules["extract"]

    def forward(net, given, brain):
        waves, lengths, mask = (each.to(D) for each in given.held)
        latents = net.extract(waves, normalize_signal=False)
        out = net.encode(latents, mask=mask, wav_lens=lengths)
        embeddings = net.project(out["embeddings"])
        targets, meta = net.quantise(latents[mask].view(len(waves), -1, latents.shape[-1]))
        embeddings = embeddings[mask].view(len(waves), -1, embeddings.shape[-1])
        value, _ = contrast(embeddings, targets, wav2vec.sample_negatives(targets, 5))
        size = value.shape[0] if value.dim() else 1
        loss = value.sum() / size + 0.1 * meta["diversity_loss"] + 10 * latents.float().pow(2).mean()
        net.quantise.quantiser.update_temp(brain.optimizer_step)
        return loss

    class Held:
        def __init__(self, held):
            self.held = held

        def to(self, *_, **__):
            return self

    def batches():
        samples = [{"id": str(i), "sig": wav(i)} for i in range(BATCH)]
        return Held(wav2vec.w2v_mask_collate_fn(samples, extract.get_output_lengths, 0.3, 5))

    return trained(modules, forward, batches)


@step
def random_projections():
    """BEST-RQ: codes of frames that are hidden."""
    from speechbrain.lobes.models.BESTRQ import brq_mask_collate_fn, compute_mask  # noqa: F401

    modules = {
        "features": Fbank(n_mels=8),
        "norm": InputNormalization(norm_type="sentence"),
        "quantise": RandomProjectionQuantizer(32, 4, 8),
        "in": Linear(input_size=8, n_neurons=8),
        "encode": TransformerEncoder(d_model=8, num_layers=1, nhead=2, d_ffn=16),
        "out": Linear(input_size=8, n_neurons=8),
    }

    def forward(net, given, _):
        waves, lengths = given.sig
        feats = net.norm(net.features(waves), lengths)
        feats = feats[:, : feats.shape[1] // 4 * 4]
        targets = net.quantise(feats.reshape(len(feats), -1, 32))
        hidden = torch.rand(targets.shape[1]) < 0.3
        spots = hidden.nonzero().squeeze(1)
        pooled = feats.reshape(len(feats), -1, 4, 8).mean(2).index_fill(1, spots.to(D), 0.0)
        keep = length_to_mask(lengths * pooled.shape[1], max_len=pooled.shape[1]).bool()
        encoded, _ = net.encode(net["in"](pooled), src_key_padding_mask=~keep)
        scores = net.out(encoded)[:, spots.to(D)]
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets[:, spots.to(D)].flatten())

    return trained(modules, forward, lambda: batch(sig=wav))


@step
def variational_autoencoder():
    from speechbrain.nnet.autoencoders import VariationalAutoencoder

    net = VariationalAutoencoder(
        encoder=Linear(input_size=8, n_neurons=4),
        decoder=Linear(input_size=4, n_neurons=8),
        mean=Linear(input_size=4, n_neurons=4),
        log_var=Linear(input_size=4, n_neurons=4),
        mask_latent=True,
    )
    loss = losses.VariationalAutoencoderLoss()

    def forward(net, given, _):
        x, lengths = given.x
        return loss(net.net.train_sample(x, lengths), x, length=lengths)

    return trained({"net": net}, forward, lambda: batch(x=lambda i: torch.randn(10 + i, 8)))


def distilled(sequence):
    def make():
        modules = {"features": Fbank(n_mels=24), "encode": crdnn(GRU), "out": Linear(input_size=16, n_neurons=WORDS)}

        def forward(net, given, _):
            waves, lengths = given.sig
            scores = net.out(net.encode(net.features(waves))).softmax(-1)
            teacher = torch.rand_like(scores).softmax(-1)
            if sequence:
                return losses.nll_loss_kd(scores, teacher, lengths)
            return losses.ctc_loss_kd(scores.clamp_min(1e-6).log(), teacher, lengths, 0, torch.device(D))

        return trained(modules, forward, speech)

    return make


STEPS["distilled_by_frames"] = distilled(True)
STEPS["distilled_by_alignments"] = distilled(False)
