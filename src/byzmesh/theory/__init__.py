"""Theory: what can be promised before a run, and what a run shows. Virtual mixing matrices, contraction, certificates.

This file imports nothing, so that `import byzmesh` stays fast: see `certificate` (can this network tolerate these
liars?), `search` (measured contraction), `design` (which weights and links would do) and `forensics` (who lied?).
"""
