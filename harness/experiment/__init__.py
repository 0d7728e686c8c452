"""Run experiments: their tasks, the store of fits, and the results read from it."""
