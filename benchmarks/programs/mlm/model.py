import torch
import torch.nn as nn


class BERT(nn.Module):
    def __init__(self, vocab_size, hidden=32, n_layers=2, attn_heads=2, max_len=20, dropout=0.1):
        super().__init__()
        self.token = nn.Embedding(vocab_size, hidden, padding_idx=0)
        self.position = nn.Embedding(max_len, hidden)
        self.segment = nn.Embedding(2, hidden)
        layer = nn.TransformerEncoderLayer(hidden, attn_heads, hidden * 4, dropout, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)

    def forward(self, x, segment):
        positions = torch.arange(x.size(1)).unsqueeze(0).to(x.device)
        h = self.token(x) + self.position(positions) + self.segment(segment)
        return self.encoder(h, src_key_padding_mask=x == 0)


class BERTLM(nn.Module):
    def __init__(self, bert, vocab_size, hidden=32):
        super().__init__()
        self.bert = bert
        self.next_sentence = nn.Linear(hidden, 2)
        self.transform = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.LayerNorm(hidden))
        self.mask_lm = nn.Linear(hidden, vocab_size)

    def forward(self, x, segment, labels=None):
        h = self.bert(x, segment)
        next_logits = self.next_sentence(h[:, 0])
        if labels is None:
            return next_logits, self.mask_lm(self.transform(h))
        # predict the masked positions alone, as the vocabulary is large
        selected = h[labels != -100]
        return next_logits, self.mask_lm(self.transform(selected))
