"""`gpt`: a small causal transformer for token data, in the form of GPT-2 (Radford et al. 2019).

    tokens (B, T)  ->  embedding + position  ->  depth times [x + attention(norm x), x + mlp(norm x)]  ->  norm
                   ->  scores (B, T, V), with the embedding's own matrix as the last layer

The last layer shares its weights with the embedding: they count, travel and are aggregated once.
"""

from __future__ import annotations

from typing import Any

from byzmesh.checks import require, whole
from byzmesh.problems.neural.modules import import_torch, modules


@modules.register("gpt")
def gpt(width: int = 64, depth: int = 2, heads: int = 4, shape: tuple[int, ...] = (64,), classes: int = 256) -> Any:
    """A causal transformer with `depth` blocks of `heads` heads over `width` numbers per token.

    >>> made = gpt(width=8, depth=1, heads=2, shape=(5,), classes=11)
    >>> import torch
    >>> made(torch.zeros(3, 5, dtype=torch.long)).shape, sum(p.numel() for p in made.parameters())
    (torch.Size([3, 5, 11]), 1016)
    """
    torch = import_torch()
    nn, functions = torch.nn, torch.nn.functional
    for name, value in (("width", width), ("depth", depth), ("heads", heads)):
        whole(f"module gpt: {name}", value, 1)
    require(width % heads == 0, f"module gpt: width must be a multiple of heads, got {width} and {heads}")
    require(
        len(shape) == 1,
        f"module gpt needs token data, the samples have shape {tuple(shape)}; give dataset: {{text: ...}}",
    )

    class Attention(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            query, key, value = (
                part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in self.inputs(x).chunk(3, -1)
            )
            seen = functions.scaled_dot_product_attention(query, key, value, is_causal=True)
            return self.output(seen.transpose(1, 2).flatten(2))

    class Block(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.attend = nn.Sequential(nn.LayerNorm(width), Attention())
            self.think = nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x: Any) -> Any:
            x = x + self.attend(x)
            return x + self.think(x)

    class GPT(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.token, self.position = nn.Embedding(classes, width), nn.Embedding(shape[0], width)
            self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
            self.norm = nn.LayerNorm(width)
            for name, parameter in self.named_parameters():
                if parameter.ndim > 1:  # the last layers of a block are smaller, so that depth does not add up
                    last = name.endswith(("output.weight", "think.3.weight"))
                    nn.init.normal_(parameter, std=0.02 / (2.0 * depth) ** 0.5 if last else 0.02)

        def forward(self, tokens: Any) -> Any:
            x = self.token(tokens) + self.position.weight[: tokens.shape[-1]]
            return functions.linear(self.norm(self.blocks(x)), self.token.weight)

    return GPT()
