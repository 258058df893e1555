"""A certificate in a notebook: the verdicts, how many liars each worker can tolerate, and the words."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from byzmesh.theory.certificate_text import levels, number
from byzmesh.theory.verdict import ANSWERS

if TYPE_CHECKING:
    from byzmesh.theory.certificate import Certificate

SIGNS = {"proved": ("#1b7837", "✓"), "refuted": ("#c62828", "✗"), "unknown": ("#8a6d00", "?")}
"""Colour and sign of a verdict; the word stands beside them."""
MOST_WORKERS = 40


def certificate_html(certificate: Certificate) -> str:
    """The certificate as HTML without scripts."""
    rows = []
    for name, meaning in levels(certificate.limit, certificate.network).items():
        verdict = getattr(certificate, name)
        colour, sign = SIGNS[verdict.status]
        asked = " (asked for)" if name == certificate.guarantee else ""
        rows.append(
            f'<tr><td style="color:{colour};text-align:left;white-space:nowrap"><b>{sign} {ANSWERS[verdict.status]}</b>'
            "</td>"
            f'<td style="text-align:left">{escape(meaning)}{asked}</td>'
            f'<td style="text-align:left">{escape(verdict.reason)}</td></tr>'
        )
    words = str(certificate).split("\n\n")[0].split("\n")
    told = "<br>".join(escape(line) for line in words[5:])
    return (
        f"<b>{escape(words[0])}</b><table>{''.join(rows)}</table><p>{told}</p>"
        f"<details><summary>Worker by worker</summary>{_workers(certificate)}</details>"
    )


def _workers(certificate: Certificate) -> str:
    heads = "".join(f"<th>{word}</th>" for word in ("worker", "neighbours", "f", "weight of f", "rho ≤", "tolerates"))
    body = "".join(
        f"<tr><td>{escape(certificate.network.label(each.worker))}</td><td>{each.neighbours}</td><td>{each.f}</td>"
        f"<td>{each.h:.3f}</td><td>{number(each.rho_bound)}</td>"
        f"<td>{'(not known)' if each.bears is None else each.bears}</td></tr>"
        for each in certificate.workers[:MOST_WORKERS]
    )
    more = len(certificate.workers) - MOST_WORKERS
    return f"<table><tr>{heads}</tr>{body}</table>" + (f"<p>{more} more workers.</p>" if more > 0 else "")
