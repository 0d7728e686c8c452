"""Models: a target density in Stan with its data, its truth and its coordinates."""

from harness.model.model import Model, OwnBase, Transform
from harness.model.truth import TrueValue, Truth

__all__ = ["Model", "OwnBase", "Transform", "TrueValue", "Truth"]
