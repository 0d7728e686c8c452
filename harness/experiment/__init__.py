"""Experiments: a grid of tasks, the store of their fits, and what is read off them."""
