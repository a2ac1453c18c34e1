"""One module per family of formats; each holds the sources that whileai-traces registers."""
