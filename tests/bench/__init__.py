"""Benchmarks: ``python -m tests.bench``."""
