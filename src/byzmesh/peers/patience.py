"""How long a peer waits."""

from __future__ import annotations

from dataclasses import dataclass

from byzmesh.errors import ConfigError


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds."""

    timeout: float = 5.0
    """For the messages of a round."""
    start: float = 30.0
    """For the first round after a start: neighbours may not be up yet."""
    grace: float = 0.01
    """Shortest grace period."""
    start_grace: float = 3.0
    """The same in the first rounds, while connections are being opened."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < 1e6:
                raise ConfigError(f"timeouts: {name} must be a positive number of seconds, got {value!r}")
