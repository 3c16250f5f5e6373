"""Translate "numbers" into shifted, reversed "numbers" with a small Transformer."""

import random
import time
from timeit import default_timer as timer

import torch
from beam import beam_search, bleu, greedy_decode
from model import BOS, EOS, PAD, LabelSmoothing, Seq2SeqTransformer
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
VOCAB_SIZE = 24
BATCH_SIZE = 16
NUM_EPOCHS = 2
WARMUP = 40
EMB_SIZE = 32


def make_pairs(n, seed):
    rng = random.Random(seed)
    pairs = []
    for _ in range(n):
        src = [rng.randint(3, VOCAB_SIZE - 1) for _ in range(rng.randint(3, 8))]
        tgt = [3 + (t - 3 + 5) % (VOCAB_SIZE - 3) for t in reversed(src)]
        pairs.append((src, tgt))
    return pairs


def collate_fn(batch):
    src_batch, tgt_batch = [], []
    for src, tgt in batch:
        src_batch.append(torch.tensor([BOS, *src, EOS]))
        tgt_batch.append(torch.tensor([BOS, *tgt, EOS]))
    return pad_sequence(src_batch, True, PAD), pad_sequence(tgt_batch, True, PAD)


class NoamOpt:
    "Optim wrapper that implements rate."

    def __init__(self, model_size, factor, warmup, optimizer):
        self.optimizer = optimizer
        self._step = 0
        self.warmup = warmup
        self.factor = factor
        self.model_size = model_size
        self._rate = 0

    def step(self):
        "Update parameters and rate"
        self._step += 1
        rate = self.rate()
        for p in self.optimizer.param_groups:
            p["lr"] = rate
        self._rate = rate
        self.optimizer.step()

    def rate(self, step=None):
        step = self._step if step is None else step
        return self.factor * (self.model_size ** (-0.5) * min(step ** (-0.5), step * self.warmup ** (-1.5)))


def run_epoch(loader, model, criterion, opt=None):
    "Standard Training and Logging Function"
    start = time.time()
    total_tokens = 0
    total_loss = 0
    tokens = 0
    for i, (src, tgt) in enumerate(loader):
        src, tgt = src.to(DEVICE), tgt.to(DEVICE)
        tgt_input, tgt_out = tgt[:, :-1], tgt[:, 1:]
        ntokens = (tgt_out != PAD).data.sum()
        logits = model(src, tgt_input)
        x = logits.log_softmax(-1).contiguous().view(-1, logits.size(-1))
        loss = criterion(x, tgt_out.contiguous().view(-1)) / ntokens
        if opt is not None:
            loss.backward()
            opt.step()
            opt.optimizer.zero_grad()
        total_loss += loss.item() * ntokens.item()
        total_tokens += ntokens
        tokens += ntokens
        if i % 10 == 1:
            elapsed = time.time() - start
            print("Epoch Step: %d Loss: %f Tokens per Sec: %f" % (i, loss, tokens / elapsed))
            start = time.time()
            tokens = 0
    return total_loss / total_tokens


def translate(model, pairs):
    model.eval()
    refs, greedy, beams = [], [], []
    with torch.no_grad():
        for src, tgt in pairs:
            x = torch.tensor([[BOS, *src, EOS]], device=DEVICE)
            refs.append([BOS, *tgt, EOS])
            greedy.append(greedy_decode(model, x, len(src) + 5))
            beams.append(beam_search(model, x, len(src) + 5))
    return bleu(refs, greedy), bleu(refs, beams)


def main():
    torch.manual_seed(0)
    train_pairs, val_pairs = make_pairs(400, 0), make_pairs(32, 1)
    model = Seq2SeqTransformer(VOCAB_SIZE, EMB_SIZE).to(DEVICE)
    for p in model.parameters():
        if p.dim() > 1:
            torch.nn.init.xavier_uniform_(p)
    criterion = LabelSmoothing(VOCAB_SIZE, PAD, 0.1).to(DEVICE)
    opt = NoamOpt(EMB_SIZE, 1, WARMUP, torch.optim.Adam(model.parameters(), lr=0, betas=(0.9, 0.98), eps=1e-9))
    train_loader = DataLoader(train_pairs, batch_size=BATCH_SIZE, shuffle=True, collate_fn=collate_fn)
    val_loader = DataLoader(val_pairs, batch_size=BATCH_SIZE, collate_fn=collate_fn)
    for epoch in range(1, NUM_EPOCHS + 1):
        start_time = timer()
        model.train()
        train_loss = run_epoch(train_loader, model, criterion, opt)
        end_time = timer()
        model.eval()
        with torch.no_grad():
            val_loss = run_epoch(val_loader, model, criterion)
        print(
            f"Epoch: {epoch}, Train loss: {train_loss:.3f}, Val loss: {val_loss:.3f}, Epoch time = {(end_time - start_time):.3f}s"
        )
    print("BLEU greedy %.3f beam %.3f" % translate(model, val_pairs[:3]))


if __name__ == "__main__":
    main()
