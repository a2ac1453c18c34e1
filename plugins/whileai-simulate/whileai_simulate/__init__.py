"""Situations, a world that fails on purpose, agents and the engine that runs them."""
