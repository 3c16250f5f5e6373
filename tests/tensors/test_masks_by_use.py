"""What is indexed with it, and what it is made of, says whether a value is a mask or positions: `# waits: op` marks every
line that waits, and no other line does."""

import pytest
from tensors.marked import marks, waits, whole

from syncscope.tensors.interpret import sites

CASES = {
    "what is called a mask, where nothing is known of either": """
        class Wrapper:
            def train_step(self, graph):
                pred = self.model(graph)
                train_mask = graph.train_mask
                named = graph.tables[graph.kind]
                return self.loss(pred[train_mask], graph.y[graph.train_mask]), named  # waits: mask_read
    """,
    "what arithmetic gives is no mask, whatever it is called": """
        class Parallel(torch.autograd.Function):
            @staticmethod
            def forward(ctx, logits, target: torch.Tensor, first: int, mask: torch.Tensor):
                target_mask = (target < first) | (target >= first + 9)
                masked_target = target.clone() - first
                masked_target[target_mask] = 0
                masked_target_1d = masked_target.view(-1)
                rows = torch.arange(logits.size(0), device=logits.device)
                kept = logits[rows, masked_target_1d]
                logits[rows, masked_target_1d] -= 1.0
                ctx.save_for_backward(masked_target_1d)
                mask_ids = (target // 2)[:, 0]
                both = mask * target
                return kept, logits[mask_ids], logits[both], logits[mask]  # waits: mask_read

            @staticmethod
            def backward(ctx, grad: torch.Tensor):
                (masked_target_1d,) = ctx.saved_tensors
                grad[torch.arange(3, device=grad.device), masked_target_1d] -= 1.0
                return grad

        def masked(self, graph, n: int):
            pred = self.model(graph)
            first_mask, last_mask = graph.first_mask, graph.first_mask
            at_mask = graph.at - n
            mask_of = graph.at.argmax(0)
            keep_mask = first_mask * last_mask
            return pred[at_mask], pred[mask_of.view(-1)], pred[keep_mask]  # waits: mask_read
    """,
    "what is called a mask, in another shape": """
        def masked(pred, clean, mask, x: torch.Tensor):
            m = mask.expand_as(pred)
            error = (pred - clean).abs().mean(1)
            rows = mask.long()
            return error[mask.squeeze(1)], x[m], x[rows]  # waits: mask_read
    """,
    "what numpy's positions pick for a network or a loss": """
        import numpy as np

        class Net(torch.nn.Module):
            def forward(self, x):
                return torch.relu(x)

            def fit(self, rows, loss_fn, names):
                for _ in range(9):
                    at = np.random.choice(len(rows["x"]), 4, replace=False)
                    said = self.forward(rows["x"][at])  # waits: index_host
                    loss = loss_fn(said, rows["y"][at])  # waits: index_host
                    apart = said.exp() - rows["z"][at]  # waits: index_host
                    print(names[at])
                    (loss + apart.mean()).backward()
    """,
    "lists as positions, however they were made": """
        def spread(x: torch.Tensor, n: int):
            at = [int(len(x) / n * i) for i in range(n)] + [-1]
            every = list(range(n))
            first = x[at, :]  # waits: index_list
            second = x[every]  # waits: index_list
            third = x[[i * i for i in range(n)]]  # waits: index_list
            return first, second, third, x[tuple(range(n))]

        def of_pairs(x: torch.Tensor, names, n: int):
            pairs, corner = list(itertools.product(range(n), repeat=2)), tuple(range(n))
            first = x[:, pairs]  # waits: index_list
            second = x[list(range(n))]  # waits: index_list
            return first, second, x[corner], x[:, list(names.keys())]
    """,
    "a tuple of numbers beside other parts of an index": """
        def spread(x: torch.Tensor, y: torch.Tensor, k):
            i, j = (1, 2, 3, 2, 3, 3), (0, 1)
            first = x[..., i, :] - x[..., j]  # waits: index_list
            return first, y[:, (5, 8)], x[j], x[(0, 1)], x[0, k], x[y.shape]  # waits: index_list
    """,
    "positions of a matching index what lies under a key, or in a list of tensors": """
        class ImageLoss(torch.nn.Module):
            def loss_labels(self, outputs, targets, indices):
                found = torch.cat([t["labels"][j] for t, (_, j) in zip(targets, indices)])  # waits: index_host
                return found.float().mean()

            def loss_masks(self, masks: list[torch.Tensor], indices):
                return torch.cat([m[j] for m, (_, j) in zip(masks, indices)])  # waits: index_host
    """,
    "positions that another function chose by a mask": """
        def matched(ids: torch.LongTensor, scores: torch.Tensor):
            best = torch.cat((torch.ones((1,), dtype=torch.bool, device=ids.device), ids[1:] != ids[:-1]))
            order = torch.sort(scores)[1]
            return ids[order][best], order[best]  # waits: mask_read

        def forward(x: torch.Tensor, ids: torch.LongTensor):
            rows, columns = matched(ids, x[:, 0])
            wanted = x.new_zeros((3, 3))
            wanted[rows, columns] = x[0]
            return wanted, x[rows], x[rows, columns]
    """,
    "indexed with a comparison": """
        def reduce(losses, low, names):
            kept = losses[losses > low]  # waits: mask_read
            inside = (losses > low) & (losses < 1)
            losses[~inside] = kept.mean() * losses  # waits: mask_write
            return names[3]
    """,
    "cast as only tensors are": """
        def compute(matrix, positive):
            positive = positive.bool()
            return matrix[positive]  # waits: mask_read
    """,
    "a sampler of anchors, and one of a data set": """
        class BalancedSampler:
            def __call__(self, matched):
                for each in matched:
                    yield torch.where(each >= 1)[0]  # waits: where

        class RowSampler:
            def __iter__(self):
                yield from torch.where(self.weights.bernoulli() > 0)[0]

        class PointSampler:
            def __iter__(self):
                return self

            def __next__(self):
                return self.points[torch.where(self.inside.bernoulli() > 0)[0]]  # waits: where

        class GridSampler(PointSampler):
            def kept(self):
                return torch.where(self.inside.bernoulli() > 0)[0]  # waits: where
    """,
    "one number under a mask": """
        def offset(scores: torch.Tensor, target: torch.Tensor, classes: torch.Tensor):
            made = torch.zeros_like(scores)
            made[target == 0] = 1.0
            made[target == 0] = scores.min().abs() + 10  # waits: mask_write
            made[target == 0, classes] = 1.0  # waits: mask_write
            return made
    """,
    "a padding mask is looked into in evaluation only": """
        def run(loader, optimizer):
            encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4), 2)
            for x, padding in loader:
                encoder(x, src_key_padding_mask=padding).mean().backward()
                optimizer.step()
            return encoder(x, src_key_padding_mask=padding)  # waits: transformer_mask
    """,
    "a mask is compared with a causal one, unless somebody says whether it is": """
        class Translator(nn.Module):
            def __init__(self):
                self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 2)
                self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 2)
                self.both = nn.Transformer(8, 2)

            def forward(self, x: torch.Tensor, y: torch.Tensor, device):
                mask = torch.ones(8, 8, device=x.device).triu(1).bool()
                a = self.encoder(x, mask)  # waits: library_read
                a = a + self.encoder(x, mask, is_causal=True) + self.encoder(x)
                b = self.decoder(y, a, tgt_mask=mask)  # waits: library_read
                b = b + self.decoder(y, a, mask, tgt_is_causal=True)
                return a, b, self.both(x, y, None, mask), self.both(x, y)  # waits: library_read
    """,
    "positions, not a mask": """
        def batched_nms(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            return torch.ops.torchvision.nms(boxes, scores, 0.5)  # waits: nms

        def detect(boxes: torch.Tensor, scores: torch.Tensor):
            keep = batched_nms(boxes, scores)
            keep = keep[:10]
            return boxes[keep]
    """,
    "a guess that is compared, then used as an index": """
        class Miner(nn.Module):
            def mine(self, embeddings, anchors):
                distances = self.distance(embeddings)
                near = distances < self.margin if self.inverted else distances > self.margin
                return anchors[near]  # waits: mask_read
    """,
    "where no other kind of array is named": """
        import numpy as np

        def split(rows, labels, low):
            found = labels[0] > low
            return rows[0][found]  # waits: mask_read

        def curves(rows, labels, low):
            found = labels[0] > low
            return np.cumsum(rows[0][found])
    """,
    "one position of many": """
        def suppress(boxes: torch.Tensor, scores: torch.Tensor, edges: torch.Tensor):
            _, order = scores.sort(descending=True)
            i = order[0]
            kept, counts = torch.unique(scores, return_counts=True)  # waits: unique
            return boxes[i], boxes[counts[0]], boxes[edges[0]]  # waits: scalar_index
    """,
    "each of what a loop goes through": """
        def confused(x: torch.Tensor, y: torch.Tensor, counts: torch.Tensor):
            for t, p in zip(y, x.argmax(1)):
                counts[t.long(), p.long()] += 1  # waits: scalar_index
            for t in y:
                counts[t] = x

        def counted(y: torch.Tensor):
            counts = [0] * 10
            for t in y:
                counts[t] += 1  # waits: index
                counts[t] = 1  # waits: index
            return counts
    """,
    "a row of the ends of edges is no number": """
        def forward(x: torch.Tensor, data):
            sources = torch.stack(data["edge_index"]).long()
            edge_index = torch.nonzero(x)  # waits: nonzero
            source, target = edge_index[0], edge_index[1]
            return x[source] + x[target]
    """,
    "a row of a sparse matrix's positions is no number": """
        def normalized(adjacency: torch.Tensor, scale: torch.Tensor):
            positions = adjacency.indices().long()
            return scale[positions[0]] * scale[positions[1]]
    """,
    "numbers at what is called positions": """
        def index_to_mask(index: torch.Tensor, subset: torch.Tensor, other: torch.Tensor, size: int):
            mask = index.new_zeros(size)
            mask[index] = 1  # waits: number_write
            mask[subset] = 1  # waits: number_write
            mask[other] = 1
            return mask
    """,
    "products of masks are masks": """
        def inside(x: torch.Tensor):
            keep = (x > 0) * (x < 1) + (x > 5)
            return x[keep]  # waits: mask_read
    """,
    "what people call a mask, by its key": """
        def step(state, grad: torch.Tensor):
            return grad[state["mask"]], grad[state["index"]]  # waits: mask_read
    """,
    "comparisons that are combined as only arrays are": """
        def inside(low, x, high, flags):
            assert (low <= x) & (x <= high)  # waits: condition
            assert flags & 4
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)


def test_a_row_that_may_be_a_number_is_told_with_low_confidence() -> None:
    code = """
        def counted(loader, counts: torch.Tensor):
            for x, y in loader:
                y = y.cuda(non_blocking=True)
                k = y[0]
                counts[k] += counts[k]
                for t in y:
                    counts[t] += 1
    """
    assert {line for line, op in waits(code, confidence=1) if op == "scalar_index"} == {8, 10}
    assert "scalar_index" not in {op for _, op in waits(code, confidence=2)}


@pytest.mark.parametrize(("dtype", "guessed"), [("", True), (" > 0", False)])
def test_a_mask_says_where_it_is_one_by_its_name_alone(dtype: str, guessed: bool) -> None:
    code = whole(
        f"def kept(x: torch.Tensor, rows: torch.Tensor):\n    row_mask = rows{dtype}\n    return x[row_mask]\n"
    )
    (site,) = sites(code.encode(), "use.py")
    assert any("guessed from the name" in why for why in site.fact.why) is guessed
