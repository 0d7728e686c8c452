"""Models: a target density in Stan with its data, its coordinates, and its density in Python."""

from harness.model.model import Model, OwnBase, Transform

__all__ = ["Model", "OwnBase", "Transform"]
