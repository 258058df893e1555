"""Metrics that compare the round of an evaluation with the theory; `measure: [certificate]` records all three.

They are registered by an entry point of `byzmesh.metrics`, as a third party's are, because training does not import
theory. Theory is imported when one of them is computed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from byzmesh.training.evaluation import Evaluation, Setting
from byzmesh.training.metrics import register_metric

if TYPE_CHECKING:
    from byzmesh.theory.contraction import Proof
    from byzmesh.theory.measured import RoundReport


@register_metric("contraction", direction="down", alone=False)
def contraction(at: Evaluation) -> float | None:
    """Largest realised ||x_n after - xbar_n|| / max_m ||x_m before - xbar_n|| over the honest workers.

    With a channel x_m are the messages as they arrived: what the rule has to cope with, and what is proved about it.
    """
    report = at.once(_report)
    return 0.0 if report is None else float(report.ratio.max())


@register_metric("violations", direction="down", alone=False)
def violations(at: Evaluation) -> float | None:
    """Honest workers whose contraction is above the proved bound."""
    report = at.once(_report)
    return 0.0 if report is None else float(len(report.violations))


@register_metric("chi2", direction="down", alone=False)
def chi2(at: Evaluation) -> float | None:
    """chi^2 of the empirical mixing matrix, for rules that mix by coefficients."""
    report = at.once(_report)
    if at.setting is None or at.setting.rule.coordinatewise:
        return None
    return 0.0 if report is None else report.chi2


@register_metric("channel_spread", direction="down", alone=False)
def channel_spread(at: Evaluation) -> float:
    """By how much the channel enlarges the honest spread: root mean square distance from the mean, arrived / sent."""
    if at.sent is None or at.arrived is None:
        return 1.0
    sent, arrived = (float(np.var(part, axis=0, dtype=np.float64).sum()) for part in (at.sent, at.arrived))
    return math.sqrt(arrived / sent) if sent > 0.0 else 1.0


@register_metric("certificate", alone=False)
def certificate(at: Evaluation) -> dict[str, float]:
    """The round compared with the theory: contraction, violations and, if the rule mixes by coefficients, chi2."""
    values = {metric.__name__: metric(at) for metric in (contraction, violations, chi2)}
    return {name: value for name, value in values.items() if value is not None}


def _report(at: Evaluation) -> RoundReport | None:
    """The last round compared with what is proved; None before the first."""
    from byzmesh.theory.measured import round_report

    if at.setting is None:
        return None
    mixing, proof = at.setting.once(_promise)
    if at.sent is None:
        return None
    network, held = at.setting.network, at.coefficients
    slots = network.layout.sender.shape[1]
    weights = None if held is None else held[:, :slots]
    if at.arrived is None:
        return round_report(network, at.sent, at.models, weights, mixing, proof)
    return round_report(network, at.arrived, at.models, weights, mixing, proof, own=at.sent)


def _promise(setting: Setting) -> tuple[Any, Proof]:
    """Virtual mixing matrix (N, N) in sparse rows and proved contraction."""
    from byzmesh.theory.contraction import proved_contraction
    from byzmesh.theory.mixing import virtual_mixing

    network, rule = setting.network, setting.rule
    proof = proved_contraction(network, rule, setting.bound, setting.weight_bound)
    return virtual_mixing(network, rule).matrix, proof
