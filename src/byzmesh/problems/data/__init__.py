"""Data sets, and who holds which samples."""
