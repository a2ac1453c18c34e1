"""The light module of whileai-judge: what it adds, as strings."""
