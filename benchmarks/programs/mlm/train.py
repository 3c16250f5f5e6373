import argparse
import math

import torch
import torch.nn as nn
from data import SentencePairs, mask_tokens
from model import BERT, BERTLM
from torch.optim import AdamW
from torch.utils.data import DataLoader
from tqdm import tqdm


class ScheduledOptim:
    """A simple wrapper class for learning rate scheduling"""

    def __init__(self, optimizer, d_model, n_warmup_steps):
        self._optimizer = optimizer
        self.n_warmup_steps = n_warmup_steps
        self.n_current_steps = 0
        self.init_lr = math.pow(d_model, -0.5)

    def step_and_update_lr(self):
        self.n_current_steps += 1
        scale = min(self.n_current_steps**-0.5, self.n_warmup_steps**-1.5 * self.n_current_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = self.init_lr * scale
        self._optimizer.step()

    def zero_grad(self):
        self._optimizer.zero_grad()


class BERTTrainer:
    def __init__(
        self,
        model,
        vocab_size,
        train_dataloader,
        test_dataloader=None,
        lr=1e-4,
        warmup_steps=100,
        with_cuda=True,
        log_freq=10,
    ):
        cuda_condition = torch.cuda.is_available() and with_cuda
        self.device = torch.device("cuda:0" if cuda_condition else "cpu")
        self.model = model.to(self.device)
        if with_cuda and torch.cuda.device_count() > 1:
            self.model = nn.DataParallel(self.model)
        self.vocab_size = vocab_size
        self.train_data, self.test_data = train_dataloader, test_dataloader
        self.optim = AdamW(self.model.parameters(), lr=lr, betas=(0.9, 0.999), weight_decay=0.01)
        self.optim_schedule = ScheduledOptim(self.optim, 32, n_warmup_steps=warmup_steps)
        self.criterion = nn.CrossEntropyLoss()
        self.log_freq = log_freq
        print("Total Parameters:", sum([p.nelement() for p in self.model.parameters()]))

    def train(self, epoch):
        self.iteration(epoch, self.train_data)

    def test(self, epoch):
        with torch.no_grad():
            self.iteration(epoch, self.test_data, train=False)

    def iteration(self, epoch, data_loader, train=True):
        str_code = "train" if train else "test"
        data_iter = tqdm(
            enumerate(data_loader),
            desc="EP_%s:%d" % (str_code, epoch),
            total=len(data_loader),
            bar_format="{l_bar}{r_bar}",
        )

        avg_loss = 0.0
        total_correct = 0
        total_element = 0
        masked_correct = masked_total = 0

        for i, data in data_iter:
            # 0. batch_data will be sent into the device (GPU or cpu)
            data = {key: value.to(self.device) for key, value in data.items()}
            inputs, labels = mask_tokens(data["input_ids"], self.vocab_size)

            # 1. forward the next_sentence_prediction and masked_lm model
            next_sent_output, mask_lm_output = self.model.forward(inputs, data["segment"], labels)
            targets = labels[labels != -100]

            # 2. losses
            next_loss = self.criterion(next_sent_output, data["is_next"])
            if targets.numel() > 0:
                mask_loss = self.criterion(mask_lm_output, targets)
            else:
                mask_loss = mask_lm_output.sum() * 0
            loss = next_loss + mask_loss

            # 3. backward and optimization only in train
            if train:
                self.optim_schedule.zero_grad()
                loss.backward()
                self.optim_schedule.step_and_update_lr()

            # next sentence prediction accuracy
            correct = next_sent_output.argmax(dim=-1).eq(data["is_next"]).sum().item()
            avg_loss += loss.item()
            total_correct += correct
            total_element += data["is_next"].nelement()
            masked_correct += (mask_lm_output.argmax(-1) == targets).sum()
            masked_total += targets.numel()

            post_fix = {
                "epoch": epoch,
                "iter": i,
                "avg_loss": avg_loss / (i + 1),
                "avg_acc": total_correct / total_element * 100,
                "loss": loss.item(),
            }
            if i % self.log_freq == 0:
                data_iter.write(str(post_fix))

        ppl = math.exp(min(20, avg_loss / len(data_iter)))
        print(
            "EP%d_%s, avg_loss=%.3f ppl=%.1f total_acc=%.2f mlm_acc=%.2f"
            % (
                epoch,
                str_code,
                avg_loss / len(data_iter),
                ppl,
                total_correct * 100.0 / total_element,
                100 * masked_correct / max(1, masked_total),
            )
        )

    def save(self, epoch, file_path="bert_trained.model"):
        output_path = file_path + ".ep%d" % epoch
        torch.save(self.model.cpu(), output_path)
        self.model.to(self.device)
        print("EP:%d Model Saved on:" % epoch, output_path)
        return output_path


def fill_mask(model, sentence, device, k=5):
    """What a trained model would put in place of each MASK."""
    x = torch.tensor([sentence], device=device)
    with torch.no_grad():
        _, logits = model(x, torch.zeros_like(x))
    for position in (x[0] == 3).nonzero().flatten().tolist():
        probs, ids = logits[0, position].softmax(-1).topk(k)
        print(position, list(zip(ids.tolist(), [round(p, 3) for p in probs.tolist()])))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-b", "--batch_size", type=int, default=8)
    parser.add_argument("-e", "--epochs", type=int, default=2)
    parser.add_argument("--vocab_size", type=int, default=60)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--log_freq", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    train_loader = DataLoader(SentencePairs(160, args.vocab_size), batch_size=args.batch_size)
    test_loader = DataLoader(SentencePairs(24, args.vocab_size, seed=1), batch_size=args.batch_size)
    bert = BERT(args.vocab_size)
    trainer = BERTTrainer(
        BERTLM(bert, args.vocab_size), args.vocab_size, train_loader, test_loader, args.lr, log_freq=args.log_freq
    )
    for epoch in range(args.epochs):
        trainer.train(epoch)
        trainer.test(epoch)
    trainer.save(args.epochs)
