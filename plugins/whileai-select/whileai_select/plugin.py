"""The light module of whileai-select: what it adds, as strings."""
