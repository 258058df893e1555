"""Nothing here leaves the machine: the frameworks' telemetry is off before any of them is imported."""

import os

os.environ.update(FLWR_TELEMETRY_ENABLED="0", WANDB_MODE="offline", WANDB_ERROR_REPORTING="false")
os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
