"""Models: a target density in Stan with its data, its truth and its coordinates."""

from harness.model.model import Model, OwnBase, Transform
from harness.model.truth import ModeTest, TrueValue, Truth

__all__ = ["ModeTest", "Model", "OwnBase", "Transform", "TrueValue", "Truth"]
