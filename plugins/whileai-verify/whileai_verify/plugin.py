"""The light module of whileai-verify: what it adds, as strings."""
