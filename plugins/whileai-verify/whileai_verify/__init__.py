"""Verifiers: rewards that are programs."""
