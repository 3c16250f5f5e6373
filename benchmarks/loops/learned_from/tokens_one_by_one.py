"""Text, token after token, until all have ended, which the host asks after each; all of it is fetched at the end."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    batch, width, words, tokens, end = 16, sized(device, 96), sized(device, 512), 20, 2
    known, state_of = nn.Embedding(words, width).to(device), nn.Linear(2 * width, width).to(device)
    blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(2)).to(device)
    head = nn.Linear(width, words).to(device)
    prompts, start = torch.randint(3, words, (batch,)).to(device), torch.zeros(batch, width).to(device)

    def run(reads: bool) -> None:
        token, state, text = prompts, start, []
        unfinished = torch.ones(batch, dtype=torch.long, device=device)
        with torch.no_grad():
            for _ in range(tokens):
                state = torch.tanh(state_of(torch.cat([known(token), state], 1)))
                hidden = state
                for block in blocks:
                    hidden = hidden + functional.gelu(block(functional.layer_norm(hidden, (width,))))
                logits = head(hidden)
                logits[:, end] = -1e4  # as long as it may be
                token = logits.argmax(1) * unfinished + end * (1 - unfinished)
                unfinished = unfinished * (token != end).long()
                text.append(token)
                if reads and unfinished.max() == 0:
                    break
        torch.stack(text, 1).tolist()

    return run
