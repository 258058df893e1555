"""What simulator and peers share: the local part of a round, schedules, metrics, checkpoint files."""
