"""Render the report's templates: each page is one file that needs no others."""

from __future__ import annotations

import base64
import functools
import math
from typing import Any

import jinja2
import pandas as pd

from harness.plan.spec import Marks
from harness.report.style import media_type


def render(template: str, **context: Any) -> str:
    """Render a template of the report.

    Parameters
    ----------
    template
        Name of the template in ``harness/report/templates``.
    context
        What the page shows; text is escaped.
    """
    return _environment().get_template(template).render(context)


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.tests["marks"] = lambda value: isinstance(value, Marks)
    environment.filters["data_uri"] = _data_uri
    environment.filters["four_digits"] = four_digits
    environment.filters["row_name"] = row_name
    environment.filters["first_sentence"] = _first_sentence
    environment.filters["column_groups"] = column_groups
    return environment


def four_digits(value: object) -> str:
    """Write four significant digits; numbers from 1,000 on are whole and have no exponent."""
    if not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, float) and math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def column_names(frame: pd.DataFrame) -> list[str]:
    """Return names of columns; two levels become one name."""
    levels = range(frame.columns.nlevels)
    parts = zip(*(frame.columns.get_level_values(level) for level in levels), strict=True)
    return [": ".join(map(str, part)) for part in parts]


def row_name(name: object) -> str:
    """Return the name of a table's row, which may have several parts."""
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def column_groups(frame: pd.DataFrame) -> list[tuple[str, int]]:
    """Return the upper names of a table with two levels, and how many columns each spans."""
    groups: list[tuple[str, int]] = []
    for top in map(str, frame.columns.get_level_values(0)):
        if groups and groups[-1][0] == top:
            groups[-1] = (top, groups[-1][1] + 1)
        else:
            groups.append((top, 1))
    return groups


def _data_uri(image: bytes) -> str:
    return f"data:{media_type(image)};base64,{base64.b64encode(image).decode('ascii')}"


def _first_sentence(text: str) -> str:
    return text.split(". ")[0].rstrip(".")
