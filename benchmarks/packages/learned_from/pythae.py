"""Training steps over pythae 0.1.2: batches of its pipelines, of each of its autoencoders and of its networks for MNIST."""

import tempfile

import pythae.models as M
import pythae.trainers as trainers
from pythae.models.nn import benchmarks
from pythae.models.nn.benchmarks import mnist
from pythae.pipelines import TrainingPipeline

ROWS, BATCH = 96, 8


def trained(net, steps=1, kind=trainers.BaseTrainerConfig, shape=(1, 28, 28), seen=None, **more):
    """A step is a batch of the pipeline's."""

    def make():
        config = kind(
            output_dir=tempfile.mkdtemp(), num_epochs=2, per_device_train_batch_size=BATCH, per_device_eval_batch_size=BATCH, **more
        )  # fmt: skip
        held = net(shape)
        pipeline = TrainingPipeline(model=held, training_config=config)
        rows = torch.rand(ROWS, *shape)
        return loop(lambda: pipeline(train_data=rows, eval_data=rows[:16] if seen else None), optimizers=steps)

    return make


def of(name, config=None, **more):
    kind, given = getattr(M, name), getattr(M, config or f"{name}Config")
    return lambda shape: kind(given(input_dim=shape, latent_dim=4, **more))


PLAIN = {
    "AE": {}, "VAE": {}, "BetaVAE": {"beta": 2.0}, "BetaTCVAE": {}, "DisentangledBetaVAE": {"C": 5.0}, "IWAE": {"number_samples": 3},
    "MIWAE": {"number_samples": 3, "number_gradient_estimates": 2}, "CIWAE": {"number_samples": 3}, "HVAE": {}, "RHVAE": {},
    "SVAE": {}, "VAMP": {"number_components": 8}, "VQVAE": {"num_embeddings": 16}, "PoincareVAE": {}, 
}  # fmt: skip
for name, more in PLAIN.items():
    STEPS[name] = trained(of(name, **more))
for name, config in {
    "WAE_MMD": "WAE_MMD_Config", "INFOVAE_MMD": "INFOVAE_MMD_Config", "RAE_GP": "RAE_GP_Config", "VAE_IAF": "VAE_IAF_Config",
    "VAE_LinNF": "VAE_LinNF_Config", "MSSSIM_VAE": "MSSSIM_VAEConfig",
}.items():  # fmt: skip
    STEPS[name] = trained(of(name, config))
STEPS["VAE_of_odds"] = trained(of("VAE", reconstruction_loss="bce"))
STEPS["VAMP_with_schedule"] = trained(of("VAMP", number_components=8, linear_scheduling_steps=10))
STEPS["VQVAE_averaged"] = trained(of("VQVAE", num_embeddings=16, use_ema=True))
STEPS["BetaTCVAE_stratified"] = trained(of("BetaTCVAE", use_mss=False))
STEPS["WAE_MMD_rbf"] = trained(of("WAE_MMD", "WAE_MMD_Config", kernel_choice="rbf"))
STEPS["PoincareVAE_wrapped"] = trained(
    of("PoincareVAE", prior_distribution="wrapped_normal", posterior_distribution="wrapped_normal")
)
STEPS["PoincareVAE_riemannian"] = trained(
    of("PoincareVAE", prior_distribution="riemannian_normal", posterior_distribution="riemannian_normal")
)
STEPS["VAE_LinNF_of_both"] = trained(of("VAE_LinNF", "VAE_LinNF_Config", flows=["Planar", "Radial"]))
STEPS["Adversarial_AE"] = trained(of("Adversarial_AE", "Adversarial_AE_Config"), 2, trainers.AdversarialTrainerConfig)
STEPS["FactorVAE"] = trained(of("FactorVAE"), 2, trainers.AdversarialTrainerConfig)
STEPS["RAE_L2"] = trained(of("RAE_L2", "RAE_L2_Config"), 2, trainers.CoupledOptimizerTrainerConfig)
STEPS["PIWAE"] = trained(
    of("PIWAE", number_samples=3, number_gradient_estimates=2), 2, trainers.CoupledOptimizerTrainerConfig
)
STEPS["VAEGAN"] = trained(of("VAEGAN"), 3, trainers.CoupledOptimizerAdversarialTrainerConfig)
STEPS["VAE_adamw"] = trained(
    of("VAE"), optimizer_cls="AdamW", optimizer_params={"weight_decay": 0.05, "betas": (0.91, 0.995)}
)
STEPS["VAE_plateau"] = trained(
    of("VAE"), scheduler_cls="ReduceLROnPlateau", scheduler_params={"patience": 5, "factor": 0.5}, seen=True
)
STEPS["VAE_mixed"] = trained(of("VAE"), amp=True)


def convolved(name, encoder, decoder, config=None, **more):
    kind, given = getattr(M, name), getattr(M, config or f"{name}Config")

    def net(shape):
        held = given(input_dim=shape, latent_dim=4, **more)
        return kind(held, encoder=getattr(mnist, encoder)(held), decoder=getattr(mnist, decoder)(held))

    return net


STEPS["AE_convolved"] = trained(convolved("AE", "Encoder_Conv_AE_MNIST", "Decoder_Conv_AE_MNIST"))
STEPS["VAE_convolved"] = trained(convolved("VAE", "Encoder_Conv_VAE_MNIST", "Decoder_Conv_AE_MNIST"))
STEPS["VAE_resnet"] = trained(convolved("VAE", "Encoder_ResNet_VAE_MNIST", "Decoder_ResNet_AE_MNIST"))
STEPS["SVAE_convolved"] = trained(convolved("SVAE", "Encoder_Conv_SVAE_MNIST", "Decoder_Conv_AE_MNIST"))
STEPS["VQVAE_resnet"] = trained(
    convolved("VQVAE", "Encoder_ResNet_VQVAE_MNIST", "Decoder_ResNet_VQVAE_MNIST", num_embeddings=16)
)
STEPS["RHVAE_convolved"] = trained(convolved("RHVAE", "Encoder_Conv_VAE_MNIST", "Decoder_Conv_AE_MNIST"))
