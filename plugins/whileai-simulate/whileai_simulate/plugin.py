"""The light module of whileai-simulate: what it adds, as strings."""
