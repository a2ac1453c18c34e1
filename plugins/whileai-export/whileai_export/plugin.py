"""The light module of whileai-export: what it adds, as strings."""
