"""A training function that several tests try: it waits once a step and has a fix, without which nothing would be run."""

OFFERS = """
def train(model, loader, optimizer):
    total = 0.0
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""
TRAIN = f"\nimport torch\n{OFFERS}"
