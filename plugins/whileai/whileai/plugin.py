"""The light module of whileai: what it adds, as strings."""
