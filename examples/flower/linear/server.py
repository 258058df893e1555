"""The server: Flower's loop, with a rule of byzmesh in the place of the average."""

import numpy as np
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp

from byzmesh.integrations.flower import Robust
from linear import TRUTH

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    settings = context.run_config
    clients = int(settings["clients"])
    strategy = Robust(
        str(settings["rule"]),
        f=int(settings["f"]),
        min_train_nodes=clients,
        min_available_nodes=clients,
        fraction_evaluate=0.0,
    )
    first = ArrayRecord([np.zeros(3)])
    result = strategy.start(grid, first, num_rounds=int(settings["rounds"]))
    weights = result.arrays.to_numpy_ndarrays()[0] if result.arrays else np.zeros(3)
    line = f"distance from the truth: {np.linalg.norm(weights - TRUTH):.4f}"
    print(line)
    if settings["result"]:
        with open(str(settings["result"]), "w") as file:
            file.write(line + "\n")
