from collections import Counter
from math import exp, log

import torch
from model import BOS, EOS


def greedy_decode(model, src, max_len):
    memory = model.encode(src)
    ys = torch.ones(1, 1).fill_(BOS).type(torch.long).to(src.device)
    for _ in range(max_len - 1):
        out = model.decode(ys, memory)
        prob = model.generator(out[:, -1])
        _, next_word = torch.max(prob, dim=1)
        next_word = next_word.item()
        ys = torch.cat([ys, torch.ones(1, 1).type_as(src.data).fill_(next_word)], dim=1)
        if next_word == EOS:
            break
    return ys[0].tolist()


def beam_search(model, src, max_len, beam_size=3, alpha=0.7):
    device = src.device
    memory = model.encode(src).expand(beam_size, -1, -1)
    beams = torch.full((beam_size, 1), BOS, dtype=torch.long, device=device)
    scores = torch.full((beam_size,), float("-inf"), device=device)
    scores[0] = 0.0
    finished = []
    for _ in range(max_len - 1):
        log_probs = model.generator(model.decode(beams, memory)[:, -1]).log_softmax(-1)
        total = scores[:, None] + log_probs
        top_scores, top_ids = total.view(-1).topk(beam_size)
        beam_ids = torch.div(top_ids, log_probs.size(1), rounding_mode="floor")
        token_ids = top_ids % log_probs.size(1)
        beams = torch.cat([beams[beam_ids], token_ids[:, None]], dim=1)
        scores = top_scores
        for k in range(beam_size):
            if token_ids[k] == EOS:
                finished.append((scores[k].item() / len(beams[k]) ** alpha, beams[k].tolist()))
                scores[k] = float("-inf")
        if len(finished) >= beam_size or torch.isinf(scores).all():
            break
    if not finished:
        finished = [(scores[0].item(), beams[0].tolist())]
    return max(finished)[1]


def bleu(references, hypotheses, n=2):
    total = 0.0
    for order in range(1, n + 1):
        match = count = 0
        for ref, hyp in zip(references, hypotheses):
            r = Counter(tuple(ref[i : i + order]) for i in range(len(ref) - order + 1))
            h = Counter(tuple(hyp[i : i + order]) for i in range(len(hyp) - order + 1))
            match += sum((r & h).values())
            count += max(1, sum(h.values()))
        total += log(max(match, 1e-9) / count)
    return exp(total / n)
