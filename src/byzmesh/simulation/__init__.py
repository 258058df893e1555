"""The simulator: Algorithm 1 for all honest workers at once."""
