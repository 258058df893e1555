"""Weights and links that turn a failing certificate into a passing one."""
