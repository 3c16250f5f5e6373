import math

import torch
import torch.nn as nn

PAD, BOS, EOS = 0, 1, 2


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size, dropout, maxlen=64):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pe = torch.zeros((maxlen, emb_size))
        pe[:, 0::2] = torch.sin(pos * den)
        pe[:, 1::2] = torch.cos(pos * den)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(1)])


class Seq2SeqTransformer(nn.Module):
    def __init__(self, vocab_size, emb_size=32, nhead=2, num_layers=1, dropout=0.1):
        super().__init__()
        self.emb_size = emb_size
        self.src_tok = nn.Embedding(vocab_size, emb_size, padding_idx=PAD)
        self.tgt_tok = nn.Embedding(vocab_size, emb_size, padding_idx=PAD)
        self.pos = PositionalEncoding(emb_size, dropout)
        self.transformer = nn.Transformer(
            emb_size, nhead, num_layers, num_layers, dim_feedforward=64, dropout=dropout, batch_first=True
        )
        self.generator = nn.Linear(emb_size, vocab_size)
        self.register_buffer("src_counts", torch.zeros(vocab_size))

    def forward(self, src, tgt):
        tgt_mask = generate_square_subsequent_mask(tgt.size(1), tgt.device)
        src_pad, tgt_pad = src == PAD, tgt == PAD
        out = self.transformer(
            self.pos(self.src_tok(src) * math.sqrt(self.emb_size)),
            self.pos(self.tgt_tok(tgt) * math.sqrt(self.emb_size)),
            None,
            tgt_mask,
            None,
            src_pad,
            tgt_pad,
            src_pad,
        )
        return self.generator(out)

    def encode(self, src):
        return self.transformer.encoder(
            self.pos(self.src_tok(src) * math.sqrt(self.emb_size)), src_key_padding_mask=src == PAD
        )

    def decode(self, tgt, memory):
        mask = generate_square_subsequent_mask(tgt.size(1), tgt.device)
        return self.transformer.decoder(self.pos(self.tgt_tok(tgt) * math.sqrt(self.emb_size)), memory, mask)


def generate_square_subsequent_mask(sz, device):
    mask = torch.triu(torch.ones((sz, sz), device=device), diagonal=1)
    return mask.bool()


class LabelSmoothing(nn.Module):
    """Annotated-transformer style label smoothing."""

    def __init__(self, size, padding_idx, smoothing=0.0):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="sum")
        self.padding_idx = padding_idx
        self.confidence = 1.0 - smoothing
        self.smoothing = smoothing
        self.size = size

    def forward(self, x, target):
        assert x.size(1) == self.size
        true_dist = x.data.clone()
        true_dist.fill_(self.smoothing / (self.size - 2))
        true_dist.scatter_(1, target.data.unsqueeze(1), self.confidence)
        true_dist[:, self.padding_idx] = 0
        mask = torch.nonzero(target.data == self.padding_idx)
        if mask.dim() > 0:
            true_dist.index_fill_(0, mask.squeeze(), 0.0)
        return self.criterion(x, true_dist.clone().detach())
