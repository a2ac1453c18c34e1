"""The light module of whileai-guard: what it adds, as strings."""
