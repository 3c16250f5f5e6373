"""A player makes sixteen moves, each a number that the host reads and gives to the next; without, they stay on the device."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(44)
    width, moves = sized(device, 64), 40
    player = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()).to(device)
    chooses, board = nn.Linear(width, moves).to(device), nn.Embedding(moves, width).to(device)
    begin = torch.randn(width).to(device)
    game: list[Any] = []

    def run(reads: bool) -> None:
        game.clear()
        state = begin
        with torch.no_grad():
            for _ in range(16):
                state = player(state)
                move = chooses(state).argmax()
                if reads:
                    number = move.item()
                    game.append(number)
                    state = state + board.weight[number]
                else:
                    game.append(move)
                    state = state + board(move)

    return run
