"""The light module of whileai-cli: what it adds, as strings."""
