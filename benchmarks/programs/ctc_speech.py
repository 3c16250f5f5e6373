"""Speech recognition with a small BiGRU and CTC on synthetic spectrograms."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

ALPHABET = "_abcdefghijklmnop "
N_MELS = 16


class IterMeter(object):
    """keeps track of total iterations"""

    def __init__(self):
        self.val = 0

    def step(self):
        self.val += 1

    def get(self):
        return self.val


class TextTransform:
    def __init__(self):
        self.char_map = {c: i for i, c in enumerate(ALPHABET)}

    def text_to_int(self, text):
        return [self.char_map[c] for c in text]

    def int_to_text(self, labels):
        return "".join(ALPHABET[i] for i in labels)


text_transform = TextTransform()


class SyntheticSpeech(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.texts = ["".join(rng.choice(ALPHABET[1:]) for _ in range(rng.randint(3, 7))) for _ in range(n)]
        self.table = torch.randn(len(ALPHABET), N_MELS, generator=torch.Generator().manual_seed(3))

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        ids = torch.tensor(text_transform.text_to_int(self.texts[i]))
        spec = self.table[ids].repeat_interleave(8, dim=0)
        return spec + 0.3 * torch.randn_like(spec), self.texts[i]


def data_processing(data):
    spectrograms, labels, input_lengths, label_lengths = [], [], [], []
    for spec, utterance in data:
        spectrograms.append(spec)
        label = torch.Tensor(text_transform.text_to_int(utterance))
        labels.append(label)
        input_lengths.append(spec.shape[0] // 2)
        label_lengths.append(len(label))
    spectrograms = nn.utils.rnn.pad_sequence(spectrograms, batch_first=True).unsqueeze(1).transpose(2, 3)
    labels = nn.utils.rnn.pad_sequence(labels, batch_first=True)
    return spectrograms, labels, input_lengths, label_lengths


def greedy_decoder(output, labels, label_lengths, blank_label=0, collapse_repeated=True):
    arg_maxes = torch.argmax(output, dim=2)
    decodes, targets = [], []
    for i, args in enumerate(arg_maxes):
        decode = []
        targets.append(text_transform.int_to_text(labels[i][: label_lengths[i]].int().tolist()))
        for j, index in enumerate(args):
            if index != blank_label:
                if collapse_repeated and j != 0 and index == args[j - 1]:
                    continue
                decode.append(index.item())
        decodes.append(text_transform.int_to_text(decode))
    return decodes, targets


def levenshtein(a, b):
    prev = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        cur = [i]
        for j, cb in enumerate(b, 1):
            cur.append(min(prev[j] + 1, cur[-1] + 1, prev[j - 1] + (ca != cb)))
        prev = cur
    return prev[-1]


def cer(reference, hypothesis):
    return levenshtein(reference, hypothesis) / max(1, len(reference))


class SpeechRecognitionModel(nn.Module):
    def __init__(self, n_class, n_feats=N_MELS, rnn_dim=32, dropout=0.1):
        super().__init__()
        self.cnn = nn.Conv2d(1, 4, 3, stride=(2, 2), padding=1)
        self.fully_connected = nn.Linear(4 * (n_feats // 2), rnn_dim)
        self.layer_norm = nn.LayerNorm(rnn_dim)
        self.gru = nn.GRU(rnn_dim, rnn_dim, batch_first=True, bidirectional=True)
        self.classifier = nn.Sequential(
            nn.Linear(rnn_dim * 2, rnn_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(rnn_dim, n_class)
        )

    def forward(self, x):
        x = F.gelu(self.cnn(x))
        sizes = x.size()
        x = x.view(sizes[0], sizes[1] * sizes[2], sizes[3]).transpose(1, 2)
        x = self.layer_norm(self.fully_connected(x))
        x, _ = self.gru(x)
        return self.classifier(x)


def train(model, device, train_loader, criterion, optimizer, scheduler, epoch, iter_meter):
    model.train()
    data_len = len(train_loader.dataset)
    for batch_idx, _data in enumerate(train_loader):
        spectrograms, labels, input_lengths, label_lengths = _data
        spectrograms, labels = spectrograms.to(device), labels.to(device)

        optimizer.zero_grad()

        output = model(spectrograms)  # (batch, time, n_class)
        output = F.log_softmax(output, dim=2)
        output = output.transpose(0, 1)  # (time, batch, n_class)

        loss = criterion(output, labels, input_lengths, label_lengths)
        loss.backward()

        optimizer.step()
        scheduler.step()
        iter_meter.step()
        if batch_idx % 10 == 0 or batch_idx == data_len:
            print(
                "Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}".format(
                    epoch, batch_idx * len(spectrograms), data_len, 100.0 * batch_idx / len(train_loader), loss.item()
                )
            )


def test(model, device, test_loader, criterion):
    model.eval()
    test_loss = 0
    test_cer = []
    with torch.no_grad():
        for i, _data in enumerate(test_loader):
            spectrograms, labels, input_lengths, label_lengths = _data
            spectrograms, labels = spectrograms.to(device), labels.to(device)

            output = F.log_softmax(model(spectrograms), dim=2).transpose(0, 1)
            loss = criterion(output, labels, input_lengths, label_lengths)
            test_loss += loss.item() / len(test_loader)

            decoded_preds, decoded_targets = greedy_decoder(output.transpose(0, 1), labels, label_lengths)
            for j in range(len(decoded_preds)):
                test_cer.append(cer(decoded_targets[j], decoded_preds[j]))
    print("Test set: Average loss: {:.4f}, Average CER: {:4f}\n".format(test_loss, sum(test_cer) / len(test_cer)))


def main(learning_rate=5e-3, batch_size=8, epochs=2):
    use_cuda = torch.cuda.is_available()
    torch.manual_seed(7)
    device = torch.device("cuda" if use_cuda else "cpu")

    kwargs = {"num_workers": 0, "pin_memory": True} if use_cuda else {}
    train_loader = DataLoader(
        SyntheticSpeech(120, 1), batch_size=batch_size, shuffle=True, collate_fn=data_processing, **kwargs
    )
    test_loader = DataLoader(SyntheticSpeech(16, 2), batch_size=batch_size, collate_fn=data_processing, **kwargs)

    model = SpeechRecognitionModel(len(ALPHABET)).to(device)
    print("Num Model Parameters", sum([param.nelement() for param in model.parameters()]))

    optimizer = optim.AdamW(model.parameters(), learning_rate)
    criterion = nn.CTCLoss(blank=0, zero_infinity=True).to(device)
    scheduler = optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=learning_rate, steps_per_epoch=len(train_loader), epochs=epochs, anneal_strategy="linear"
    )
    iter_meter = IterMeter()
    for epoch in range(1, epochs + 1):
        train(model, device, train_loader, criterion, optimizer, scheduler, epoch, iter_meter)
        test(model, device, test_loader, criterion)


if __name__ == "__main__":
    main()
