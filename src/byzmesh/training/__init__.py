"""What simulator and peers share: schedules, local updates, variance reduction, metrics, checkpoint files."""
