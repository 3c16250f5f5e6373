import random

import torch
from torch.utils.data import Dataset

PAD, CLS, SEP, MASK = 0, 1, 2, 3
SPECIAL = 4


class SentencePairs(Dataset):
    """Pairs of "sentences": the second follows the first, or does not."""

    def __init__(self, n, vocab_size=60, max_len=20, seed=0):
        self.rng = random.Random(seed)
        self.n, self.vocab_size, self.max_len = n, vocab_size, max_len

    def __len__(self):
        return self.n

    def sentence(self, start):
        return [SPECIAL + (start + 3 * i) % (self.vocab_size - SPECIAL) for i in range(self.rng.randint(4, 7))]

    def __getitem__(self, i):
        first = self.sentence(i)
        is_next = self.rng.random() < 0.5
        second = self.sentence(first[-1] if is_next else self.rng.randint(0, 50))
        ids = [CLS, *first, SEP, *second, SEP]
        segment = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        pad = self.max_len - len(ids)
        return {
            "input_ids": torch.tensor(ids + [PAD] * pad),
            "segment": torch.tensor(segment + [0] * pad),
            "is_next": torch.tensor(int(is_next)),
        }


def mask_tokens(inputs, vocab_size, mlm_probability=0.15):
    """Prepare masked tokens inputs/labels: 80% MASK, 10% random, 10% original."""
    labels = inputs.clone()
    probability_matrix = torch.full(labels.shape, mlm_probability, device=inputs.device)
    probability_matrix.masked_fill_(inputs < SPECIAL, value=0.0)
    masked_indices = torch.bernoulli(probability_matrix).bool()
    labels[~masked_indices] = -100

    indices_replaced = torch.bernoulli(torch.full(labels.shape, 0.8, device=inputs.device)).bool() & masked_indices
    inputs[indices_replaced] = MASK

    indices_random = (
        torch.bernoulli(torch.full(labels.shape, 0.5, device=inputs.device)).bool() & masked_indices & ~indices_replaced
    )
    random_words = torch.randint(vocab_size, labels.shape, dtype=torch.long, device=inputs.device)
    inputs[indices_random] = random_words[indices_random]
    return inputs, labels
