import numpy as np
import torch


class PackedDocuments(torch.utils.data.IterableDataset):
    """Short "documents" packed into rows of one length; yields tokens and the document of each token."""

    def __init__(self, vocab_size, seq_len, seed):
        self.vocab_size, self.seq_len, self.seed = vocab_size, seq_len, seed

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        buffer, docs, doc = [], [], 0
        while True:
            start, stride = rng.integers(1, self.vocab_size), rng.integers(1, 4)
            length = rng.integers(5, 15)
            buffer += [1 + int(start + stride * i) % (self.vocab_size - 1) for i in range(length)] + [0]
            docs += [doc] * (length + 1)
            doc += 1
            while len(buffer) > self.seq_len:
                yield torch.tensor(buffer[: self.seq_len + 1]), torch.tensor(docs[: self.seq_len])
                buffer, docs = buffer[self.seq_len :], docs[self.seq_len :]
