"""Exports stored runs: one model for PyTorch or NumPy, or a folder with config, metrics and models.

The layers of a model come from binding the config's problem again, so its data set must be available.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.errors import ConfigError
from byzmesh.files import folder, write
from byzmesh.problems.base import Task
from byzmesh.problems.linear.task import LinearTask
from byzmesh.problems.neural.modules import import_torch
from byzmesh.problems.neural.task import TorchTask
from byzmesh.simulation.engine import Simulation
from byzmesh.store import ENDED, RunRecord, Store
from byzmesh.sweeps.build import build
from byzmesh.sweeps.checkpoints import checkpoint_folder
from byzmesh.sweeps.models import Models, kept_rounds, models_file, read_models, worker_ids
from byzmesh.torch import state_dict
from byzmesh.training.checkpoint import load_checkpoint

ENDINGS = (".safetensors", ".pt", ".pth")


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What was written."""

    path: Path
    whose: str
    """`worker 3`, or `mean of 10 workers`."""
    round: int
    status: str
    parameters: int


def export_model(store: Store, key: str, to: Path, worker: int | None = None, round: int | None = None) -> Exported:
    """Write a model of a stored run: a kept one or, if the run has not ended, that of its checkpoint.

    worker  id of an honest worker in the config's network; default: the mean of all honest models
    round   an evaluation whose models were kept; default: the last round
    to      the suffix gives the format: .safetensors, or .pt or .pth for `torch.load(..., weights_only=True)`

    Problem torch gives its module's whole `state_dict`; softmax, logistic and least-squares `weight` and `bias` of a
    `torch.nn.Linear`; a problem without layers `model` (D,).
    """
    check_ending(to)
    run = store.get(key)
    kept = None if round is None and run.status not in ENDED else _kept(store, run, round)
    problem: dict[str, Any] = run.config["problem"]
    here = {"device": "cpu"} if "device" in problem else {}  # a GPU run can be exported on any machine
    simulation = build({**run.config, "problem": problem | here})
    models = kept or _unfinished(store, run, simulation)
    vector, whose = _choose(models, worker)
    facts = {"whose": whose, "round": str(models.round), "config": json.dumps(models.config)}
    write(to, model_content(simulation.task, vector, to.suffix, facts), option="--to")
    return Exported(path=to, whose=whose, round=models.round, status=models.status, parameters=vector.size)


def check_ending(to: Path) -> None:
    """Raise unless the suffix is that of a model file."""
    if to.suffix not in ENDINGS:
        raise ConfigError(f"--to must end in {', '.join(ENDINGS)}, got {to.name!r}; name the file model.safetensors")


def export_run(store: Store, key: str, out: Path) -> list[Path]:
    """Write `config.json`, `metrics.json`, `metrics.csv` and, if they were kept, `models.safetensors` to a folder."""
    run = store.get(key)
    series = store.series(run.key)
    summary = {
        "key": run.key,
        "status": run.status,
        "rounds": run.rounds,
        "seconds": run.seconds,
        "metrics": {name: values.tolist() for name, values in series.items()},
    }
    table = io.StringIO(newline="")
    lines = csv.writer(table, lineterminator="\n")
    lines.writerow(series)
    lines.writerows(zip(*(values.tolist() for values in series.values()), strict=True))
    folder(out)
    written = [
        write(out / "config.json", json.dumps(run.config, indent=2) + "\n"),
        write(out / "metrics.json", json.dumps(summary, indent=2) + "\n"),
        write(out / "metrics.csv", table.getvalue()),
    ]
    kept = models_file(store.path, run.key)
    if kept.exists():
        written.append(write(out / "models.safetensors", kept.read_bytes()))
    else:
        (out / "models.safetensors").unlink(missing_ok=True)  # of a run exported there before
    return written


def _kept(store: Store, run: RunRecord, round: int | None) -> Models:
    path = models_file(store.path, run.key, round)
    if path.exists():
        return read_models(path)
    if round is not None:
        rounds = ", ".join(map(str, kept_rounds(store.path, run.key)))
        known = f"choose among {rounds}" if rounds else "--keep-models all keeps those of each evaluation"
        raise ConfigError(f"run {run.key[:12]} has no models of round {round}; {known}")
    if run.config.get("kind") == "drill":
        raise ConfigError(f"run {run.key[:12]} is a drill: export its models from its --out, with --worker ID")
    raise ConfigError(
        f"run {run.key[:12]} kept no models; compute it again with --recompute --keep-models final to have them"
    )


def _unfinished(store: Store, run: RunRecord, simulation: Simulation) -> Models:
    """The models of a run's checkpoint."""
    path = checkpoint_folder(store.path) / run.key
    if not path.exists():
        raise ConfigError(f"run {run.key[:12]} is {run.status} and has no checkpoint yet; let it compute for a while")
    arrays, facts = load_checkpoint(path)
    return Models(
        models=arrays["models"][simulation.honest_row],
        workers=worker_ids(run.config),
        round=facts["round"],
        status=run.status,
        config=run.config,
    )


def _choose(kept: Models, worker: int | None) -> tuple[npt.NDArray[Any], str]:
    """(D,) the chosen model, and whose it is."""
    if worker is None:
        mean: npt.NDArray[Any] = kept.models.mean(axis=0, dtype=np.float64).astype(kept.models.dtype)
        return mean, f"mean of {len(kept.models)} workers"
    if worker not in kept.workers:
        known = ", ".join(map(str, kept.workers))
        raise ConfigError(f"--worker must be the id of an honest worker, got {worker}; choose among {known}")
    return kept.models[kept.workers.index(worker)], f"worker {worker}"


def model_content(task: Task, vector: npt.NDArray[Any], ending: str, facts: dict[str, str]) -> bytes:
    """The content of a model file of a (D,) model of this task; the ending gives the format."""
    if isinstance(task, TorchTask) or ending != ".safetensors":
        return _torch_content(task, vector, ending, facts)
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in _arrays(task, vector).items()}
    content: bytes = save(arrays, {"format": "pt" if isinstance(task, LinearTask) else "np", **facts})
    return content


def _arrays(task: Task, vector: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    return task.layers(vector) if isinstance(task, LinearTask) else {"model": vector}


def _torch_content(task: Task, vector: npt.NDArray[Any], ending: str, facts: dict[str, str]) -> bytes:
    torch = import_torch(f"export to {ending}")
    entries = (
        state_dict(task, vector)
        if isinstance(task, TorchTask)
        else {name: torch.from_numpy(array) for name, array in _arrays(task, vector).items()}
    )
    # shared weights are written under each of their names, so that load_state_dict finds them all
    alone = {name: value.cpu().clone(memory_format=torch.contiguous_format) for name, value in entries.items()}
    if ending == ".safetensors":
        from safetensors.torch import save

        content: bytes = save(alone, {"format": "pt", **facts})
        return content
    buffer = io.BytesIO()
    torch.save(alone, buffer)
    return buffer.getvalue()
