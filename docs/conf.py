"""Settings of the documentation; ``nox -s docs`` builds it."""

from __future__ import annotations

import re
from importlib.metadata import version as version_of
from typing import Literal

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

project = "harness"
author = "The harness developers"
project_copyright = f"2026, {author}"
version = release = version_of("harness")

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
language = "en"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_default_options = {
    "members": True,
    # numpydoc fails on the alias of a tuple type.
    "exclude-members": "Shape",
}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
# Names in place of what they stand for.
_ALIASES = ("FloatArray", "LogG", "LogDensity", "Shapes", "Shape", "Engine")
autodoc_type_aliases = {name: name for name in _ALIASES} | {"npt.ArrayLike": "ArrayLike"}
# numpydoc loads it; every page here is written by hand.
autosummary_generate = False
python_maximum_signature_line_length = 88
# Members have entries of their own; attributes are a list in the text of their class.
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True

html_theme = "furo"
html_title = "harness"
html_static_path = ["_static"]
html_css_files = ["own.css"]
html_math_renderer = "mathml"
# No page needs the network: the fonts are the reader's own, formulas are MathML.
html_theme_options = {"navigation_with_keys": True}


def _mathml(formula: str, display: Literal["inline", "block"]) -> str:
    # The converter puts no space between a function and what follows it.
    return re.sub(
        r"<mi>log</mi>(?!</mrow>)",
        r'\g<0><mspace width="0.17em"/>',
        convert(formula, display=display),
    )


def _inline(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _display(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append(f'<div class="math">{_mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def _escape(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Keep |x| and *shape in docstrings from being read as markup, and headings out of the page."""
    for i, line in enumerate(lines):
        if what == "module" and i + 1 < len(lines) and re.fullmatch("-{3,}", lines[i + 1]):
            # A heading: several modules share a page, and each has its references.
            lines[i : i + 2] = [f".. rubric:: {line}", ""]
            continue
        parts = re.split(r"(``.*?``)", line)
        parts[::2] = (re.sub(r"\||(?<![\w*\\])\*(?=\w)", r"\\\g<0>", part) for part in parts[::2])
        lines[i] = "".join(parts)


def _shown_signature(
    app: Sphinx,
    what: str,
    name: str,
    thing: object,
    options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str, str] | None:
    """Clear a signature of what Python prints for aliases and for defaults of dataclasses."""
    if signature is None:
        return None
    shown = signature.replace("<factory>", "...")
    both = (shown, returned or "")
    clear = [re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", each) for each in both]
    return (clear[0], clear[1]) if clear != [signature, returned or ""] else None


def setup(app: Sphinx) -> None:
    """Write formulas as MathML, which browsers and screen readers know by themselves."""
    # Before numpydoc, which knows what the stars of a parameter's name mean.
    app.connect("autodoc-process-docstring", _escape, priority=100)
    app.connect("autodoc-process-signature", _shown_signature, priority=100)
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
