"""Spins on lattices: NumPy alone."""
