"""What a channel costs a certificate: rounding and noise enlarge the honest spread.

Message m arrives as y_m = x_m + e_m with ||e_m|| <= E; a worker knows its own model. The rule sees the y_m, so its
contraction constant holds for them: with R the honest spread around xbar_n, that of the messages is at most R + 2 E,
and their average is at most E from xbar_n. Hence

    ||A_n - xbar_n|| <= rho (R + 2 E) + E = rho R + (1 + 2 rho) E

E follows from what the stages declare (`Stage.distortion`): errors of stages add up, and a later stage sees what the
earlier ones made. Stages that leave out coordinates or shorten steps depend on the past: they have no such bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from byzmesh.channels import Stage
from byzmesh.channels.distortion import Distortion


@dataclass(frozen=True, kw_only=True)
class ChannelError:
    """E <= sqrt(D) (peak max |x| + least) + length ||x||, x with its noise, and the noise's own length.

    unknown  names a stage without a bound
    """

    peak: float = 0.0
    length: float = 0.0
    least: float = 0.0
    noise: float = 0.0
    unknown: str | None = None

    def bound(self, dimension: int, largest: float, norm: float) -> float:
        """E for models of this dimension, with entries up to `largest` and of this norm; infinite if unknown.

        Noise is longer than sigma (sqrt(D) + 4) with a probability below 1e-3 per message.

        >>> round(ChannelError(peak=1 / 127).bound(10_000, 0.5, 7.0), 4)
        0.3937
        """
        if self.unknown is not None:
            return math.inf
        noise = self.noise * (math.sqrt(dimension) + 4.0)
        grown = largest + self.noise * math.sqrt(2.0 * math.log(1e3 * dimension))
        return math.sqrt(dimension) * (self.peak * grown + self.least) + self.length * (norm + noise) + noise

    def __str__(self) -> str:
        if self.unknown is not None:
            return f"{self.unknown} leaves out what receivers fill in from the past: E is not bounded by one message"
        sent = "x + noise" if self.noise else "x"
        parts = [f"{self.peak:.3g} max|{sent}| sqrt(D)"] if self.peak else []
        parts += [f"{self.length:.3g} ||{sent}||"] if self.length else []
        parts += [f"{self.least:.3g} sqrt(D)"] if self.least else []
        parts += [f"{self.noise:.3g} (sqrt(D) + 4)"] if self.noise else []
        rarely = ", but for one message in 1000" if self.noise else ""
        return f"a message is off by E <= {' + '.join(parts) or '0'}{rarely}"


def channel_error(stages: Sequence[Stage], neighbours: int) -> ChannelError:
    """What a channel declares about its error, for workers with at most so many neighbours.

    >>> from byzmesh.channels import channel_stages
    >>> str(channel_error(channel_stages([{"name": "gaussian-noise", "sigma": 0.01}, "int8"]), 5))
    'a message is off by E <= 0.00787 max|x + noise| sqrt(D) + 0.01 (sqrt(D) + 4), but for one message in 1000'
    """
    parts: list[Distortion] = []
    for stage in stages:
        if stage.distortion is None:
            return ChannelError(unknown=stage.name)
        parts.append(stage.distortion)
    variance = sum(part.noise**2 + neighbours * part.pair_noise**2 for part in parts)
    return ChannelError(
        peak=sum(part.peak for part in parts),
        length=sum(part.length for part in parts),
        least=sum(part.least for part in parts),
        noise=math.sqrt(variance),
    )


def statement(stages: Sequence[Stage], rho: float, neighbours: int) -> str:
    """One line: what lies and the channel can do together.

    >>> from byzmesh.channels import channel_stages
    >>> statement(channel_stages("bfloat16"), 0.5, 5)
    'Channel: a message is off by E <= 0.00391 ||x||; lies and channel move a worker by at most 0.5 R + 2 E.'
    """
    error = channel_error(stages, neighbours)
    if any(stage.screens for stage in stages):
        return f"Channel: {error}; what is not fetched counts as silent, and nothing is proved about fewer neighbours."
    if error.unknown is not None or not math.isfinite(rho):
        end = "" if error.unknown is not None else "; nothing is proved about the rule"
        return f"Channel: {error}{end}."
    return f"Channel: {error}; lies and channel move a worker by at most {rho:.4g} R + {1 + 2 * rho:.4g} E."
