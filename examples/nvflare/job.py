"""Linear regression in NVFlare's simulator, in which a client lies; see docs/integrations.md.

python examples/nvflare/job.py            IOS
python examples/nvflare/job.py average    NVFlare's own weighted average
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from client import TRUTH
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.fuel.utils import fobs
from nvflare.fuel.utils.constants import FrameworkType
from nvflare.job_config.api import FedJob
from nvflare.job_config.script_runner import ScriptRunner

from byzmesh.integrations.nvflare import RobustAggregator

CLIENTS, ROUNDS = 5, 4
FIRST = {"weights": [0.0, 0.0, 0.0]}


def main() -> None:
    aggregator = None if sys.argv[1:] == ["average"] else RobustAggregator("ios", f=1)
    job = FedJob(name="linear", min_clients=CLIENTS)
    job.to_server(FedAvg(num_clients=CLIENTS, num_rounds=ROUNDS, persistor_id="", model=FIRST, aggregator=aggregator))
    client = str(Path(__file__).with_name("client.py"))
    job.to_clients(ScriptRunner(script=client, framework=FrameworkType.NUMPY))
    with tempfile.TemporaryDirectory() as workspace:
        job.simulator_run(workspace, n_clients=CLIENTS, threads=CLIENTS)
        saved = next(Path(workspace).rglob("FL_global_model.pt"))
        weights = fobs.loadf(str(saved)).params["weights"]
    print(f"distance from the truth: {np.linalg.norm(np.asarray(weights) - TRUTH):.4f}")


if __name__ == "__main__":
    main()
