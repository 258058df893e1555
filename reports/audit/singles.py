"""What a rule takes of a neighbour that alone has something, and of a lie that looks like one: the table in README.md.

Ten neighbours and f = 2, as on the two-castle graph with one class per worker: everybody is 18 step sizes from one
point along a coordinate of its own (18 is zeta there, `byzmesh audit` prints it). In units of the plain mean's share.

    python reports/audit/singles.py
"""

from __future__ import annotations

import numpy as np

import byzmesh as bm
from byzmesh.round import Round

RULES = [
    *("WeiMean", "Reprieve", "CS+", "GeoMed", "Tether", "IOS", "FABA", "NNM"),
    *("Leash", "CC", "SCC", "DRSA", "TriMean", "CooMed"),
]
SIZE, LIES = 11, 2

if __name__ == "__main__":
    print("rule,round,of a single worker,of a lie")
    for name in RULES:
        for number in (50, 400):
            step = 0.9 / np.sqrt(number + 1)
            points = 18.0 * step * np.eye(2 * SIZE)[:SIZE]
            share = np.zeros(SIZE)
            for shift in range(SIZE - 1):  # ties are broken by order
                order = 1 + np.roll(np.arange(SIZE - 1), shift)
                at = Round(number=number, total=1000, step_size=step, seed=0)
                out = bm.aggregate(name, points[0], points[order], f=LIES, round=at, previous=np.zeros(2 * SIZE))
                share += out[:SIZE] / (18.0 * step) / (SIZE - 1)
            print(f"{name},{number},{SIZE * share[1:-LIES].mean():.3f},{SIZE * share[-LIES:].mean():.3f}")
