"""A small GPT-2 that transformers' `Trainer` trains on tokens that are drawn, its loss logged in every step."""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    """Sequences that are drawn."""

    def __init__(self, number: int, length: int, words: int) -> None:
        self.tokens = torch.randint(words, (number, length), generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3000)
    options = parser.parse_args()
    config = GPT2Config(vocab_size=2000, n_positions=128, n_embd=256, n_layer=options.layers, n_head=4)
    arguments = TrainingArguments(
        "out",
        max_steps=options.steps,
        per_device_train_batch_size=16,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    Trainer(GPT2LMHeadModel(config), arguments, train_dataset=Tokens(4096, 128, 2000)).train()


if __name__ == "__main__":
    main()
