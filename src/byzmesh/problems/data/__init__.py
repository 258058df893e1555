"""Data sets, and which worker gets which samples."""
