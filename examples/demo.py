"""One network under one attack with three rules: what lying neighbours do, and how IOS copes.

Run by scripts/demo; writes pictures to demo-output/.
"""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import byzmesh as bm

RULES = ("WeiMean", "CooMed", "IOS")
ROUNDS = 6000


def main() -> None:
    console = Console()
    out = Path("demo-output")
    out.mkdir(exist_ok=True)
    network = bm.network("paper/two-castle")
    console.print(f"\n[bold]12 workers, two of them lying[/bold]: {network.draw(out / 'network.png')}")
    console.print("Each honest worker has only one MNIST digit and must learn the other nine from its neighbours.")
    console.print(
        f"The liars send the negated mean of their victims' inboxes. {ROUNDS} rounds of softmax regression:\n"
    )
    runs: dict[str, bm.Run] = {}
    for rule in RULES:
        began = time.perf_counter()
        runs[rule] = bm.simulate(
            problem={"name": "softmax", "partition": "one-class"},
            network="paper/two-castle",
            rule=rule,
            attack="sign-flipping",
            rounds=ROUNDS,
            evaluate_every=200,
            dtype="float32",
            profile="paper",
        )
        took = time.perf_counter() - began
        console.print(f"  {rule:8} {runs[rule].final():7.2%} accuracy  [dim]({took:.1f} s)[/dim]")
    table = Table(title="\nTest accuracy of the honest workers under sign-flipping", title_justify="left")
    for heading in ("rule", "mean", "worst worker", "rounds/s", "liars' messages cut", "honest ones cut"):
        table.add_column(heading, justify="left" if heading == "rule" else "right")
    for rule, run in runs.items():
        cut = ("-", "-")
        if run.edges is not None:
            lying = run.edges.lying
            cut = (f"{run.edges.cut[lying].sum() / run.edges.rounds[lying].sum():.1%}", f"{run.edges.mistakes:.1%}")
        speed = f"{run.rounds / run.seconds:.0f}"
        table.add_row(rule, f"{run.final():.2%}", f"{run.final('worst_accuracy'):.2%}", speed, *cut)
    console.print(table)
    console.print(
        "\nThe published start, used here, makes flipped models stand out. Where all start at zero, IOS falls:\n"
        "byzmesh run examples/two-castle.yaml --set problem.init=zero"
    )
    console.print(f"\nCurves: {draw_curves(runs, out / 'accuracy.png')}\n")


def draw_curves(runs: dict[str, bm.Run], path: Path) -> Path:
    """Accuracy over the rounds, one line per rule."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for rule, run in runs.items():
        axes.plot(run.metrics["round"], 100 * run.metrics["accuracy"], label=rule, linewidth=2)
    axes.set(xlabel="round", ylabel="test accuracy (%)", ylim=(0, 100))
    axes.set_title("Two liars of twelve flip signs, non-iid MNIST")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=150)
    return path


if __name__ == "__main__":
    main()
