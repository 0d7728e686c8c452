"""Temper a user's Stan program: write the programs that our methods run."""

from harness.temper.base import BaseVerdict
from harness.temper.classify import Statement, What
from harness.temper.model import tempered_model
from harness.temper.program import NoLikelihoodError, TemperedProgram, as_table, temper
from harness.temper.templates import Variant

__all__ = [
    "BaseVerdict",
    "NoLikelihoodError",
    "Statement",
    "TemperedProgram",
    "Variant",
    "What",
    "as_table",
    "temper",
    "tempered_model",
]
