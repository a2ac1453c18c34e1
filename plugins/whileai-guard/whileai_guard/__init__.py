"""Markers, leaks and contamination: the checks before training."""
