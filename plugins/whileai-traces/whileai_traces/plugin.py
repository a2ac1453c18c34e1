"""The light module of whileai-traces: what it adds, as strings."""
