"""The text of the reproduction report."""

from __future__ import annotations

from collections.abc import Sequence

from byzmesh.studies.paper.published import FILES

QUICK = (
    "This is the quick variant: 5,000 rounds (published: 50,000; octopus 150,000; Figure 4 25,000 up to 8 liars), "
    "evaluated every 100. Its numbers are not the published ones."
)
QUICK_TABLES = (
    "A quick table shows which rules withstand the attacks and which do not learn. It cannot show the published "
    "accuracies, differences of a point, nor consensus errors, which fall with the step size; so its cells are not "
    "coloured by how near they are to the published ones."
)
QUICK_TABLE_3 = (
    "On Table III, IOS and FABA withstand all five attacks and lose most to ALIE; Krum (but under ALIE), SimRew and no "
    "communication do not learn, nor WeiMean under Gaussian noise and isolation or GeoMed under sign-flipping and "
    "isolation. Rules that work are about 6 points lower than published, CooMed and TriMean up to 26. How far WeiMean, "
    "CC and SCC fall under sign-flipping does not show."
)

SECTIONS: dict[str, tuple[str, ...]] = {
    "agreement": (
        "Agreement with the published cells",
        "A cell is the mean over the last 10 evaluations of one seed, as published.",
    ),
    "table-1": (
        "Table I: contraction and what follows",
        "The paper gives orders; here the contraction constant of each rule is searched on complete graphs, and "
        "whether a rule is RCA (contracts enough) and RDSA (doubly stochastic virtual mixing matrix) is decided with a "
        "reason. The paper's condition for RCA holds on none of its own graphs: two-castle has max h 0.182 where "
        "h < 0.0030 would be needed, ER-12 0.250 (0.0024), octopus 0.143 (0.0007).",
    ),
    "table-2": ("Table II: two-castle graph, iid",),
    "table-3": (
        "Table III: two-castle graph, non-iid",
        "The text calls FABA doubly stochastic here and IOS equivalent to it. With liars {7, 9} two workers have only "
        "one lying neighbour (chi² = 0.0020), and FABA as run leaves its own model out of its means: see the claims.",
    ),
    "table-4": (
        "Table IV: octopus graph, non-iid",
        "CC and FABA weigh all vectors equally, SCC and IOS by Metropolis-Hastings; radius 0.3.",
    ),
    "table-5": ("Table V: Erdos-Renyi graph, iid",),
    "table-6": ("Table VI: Erdos-Renyi graph, non-iid",),
    "figure-1": (
        "Figure 1: accuracy and disagreement, Erdos-Renyi graph, sign-flipping, non-iid",
        "Runs of Table VI, whose published numbers stand beside the ends of the curves.",
    ),
    "figure-2": ("Figure 2: the two-castle graph of the disagreement example",),
    "figure-3": ("Figure 3: the two-castle and octopus graphs",),
    "figure-4": (
        "Figure 4: IOS on Erdos-Renyi graphs with 20 honest workers",
        'The text: "IOS constantly performs well when the number of Byzantine workers is less than 7". Look at ALIE. '
        "Workers whose h reaches 1/3, where Theorem 3 ends, for 2, 4, 6, 7, 8 and 10 liars: 0, 0, 1, 0, 3, 14. A "
        "run that diverged has no point: isolation with 8 and 10 liars drives models out of the range of numbers.",
    ),
    "misjudged-f": (
        "Misjudged f",
        "Every published run knows each worker's true number of lying neighbours. Here the paper's rules that take f "
        "get it too small by one, exact, too large by one, and as the largest true number for all, under the three "
        "attacks that hurt most. `byzmesh arena --bounds` does the same for other rules. On the octopus graph, with "
        "the rules of Table IV, an arm has a single neighbour, so that f = 0 is all that is allowed there (Krum "
        "refuses even that), and f - 1 is 0 for everyone: nothing is cut.",
    ),
    "examples": (
        "Worked examples of Section IV",
        "Disagreement: on the two-castle graph of six honest workers, three at -1 and three at 1, medians and "
        "Krum never agree although nobody lies; means do, and their curves coincide.",
        "Bias: on the octopus graph with z = -1 on the head and 1 on the arms, a doubly stochastic W (Metropolis-"
        "Hastings) finds the minimum x* = 0; equal weights settle at sum p_n z_n = -5/9, whatever the step size.",
    ),
    "claims": (
        "Where the text and its own numbers disagree",
        "The paper profile is what produced the published numbers; the text defines some of it otherwise. Both, run: "
        "FABA as the text describes it equals IOS here, as run it does not.",
        "Isolation as the text writes it leaves out w'_nn x_n: its messages add up to (1 + w'_nn) x_n, and the models "
        "of WeiMean grow without bound. "
        "Sign-flipping as written leaves out the victim's own model. Gaussian noise as written has variance 1, as run "
        "900. In sample-duplicating as written each liar draws for itself.",
        "Krum's text says S - q - 1 nearest, its formula S - q - 2 (what was run).",
        "Not shown by a run: four attacks are announced and five listed.",
    ),
    "outside": (
        "From outside: IOS on two-castle graphs with 20 honest workers",
        "Not in the paper: records published with its official code, one seed each. Two consecutive honest workers "
        "share a class. The graphs have 11 to 15 nodes in each castle.",
    ),
}


def quick_text(targets: Sequence[str]) -> tuple[str, ...]:
    """Notes on the quick variant of these targets; empty for targets that it does not change."""
    if not set(targets) - {"table-1", "figure-2", "figure-3", "examples"}:
        return ()
    tables = (QUICK_TABLES,) if set(targets) & set(FILES) else ()
    return (QUICK, *tables, *((QUICK_TABLE_3,) if "table-3" in targets else ()))


def intro(targets: Sequence[str], quick: bool) -> tuple[str, ...]:
    """The paragraphs at the top of the report."""
    text = [
        "Wu, Chen, Ling: Byzantine-Resilient Decentralized Stochastic Optimization with Robust Aggregation Rules. "
        "Softmax regression on MNIST, profile paper: the settings that produced the published numbers."
    ]
    if quick:
        text += quick_text(targets)
    elif set(targets) & set(FILES):
        text.append(
            "In the tables, ours is in bold with the published value below it, coloured by the difference; hover or "
            "tap for more. Click a heading to sort and a legend entry to hide a curve."
        )
    return tuple(text)
