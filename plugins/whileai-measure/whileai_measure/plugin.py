"""The light module of whileai-measure: what it adds, as strings."""
