"""pass@k, pass^k, mean reward and comparisons, with intervals over tasks."""
