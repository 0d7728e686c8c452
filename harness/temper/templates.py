"""The Stan code around a program's own statements in its tempered forms.

In these texts, as in ``stan/``, log_base is log b and log_ratio is log gamma - log b, of one point
or of each pseudo-sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Variant = Literal[
    "target",
    "prior",
    "pseudo_extended",
    "continuously_tempered",
    "collapsed_tempered",
    "collapsed_tempered_zero_likelihood",
    "collapsed_pseudo_extended",
]
"""The name by which methods know one of our programs.

``target`` has the original's density with all constants, ``prior`` only its untempered part, and
``collapsed_tempered_zero_likelihood`` is ``collapsed_tempered`` for a likelihood that is zero in
places: see :mod:`harness.temper.twice`."""

_COLLAPSED = ("log_tempered_mass", "inv_temp_rng", "continuous_tempering_log_weight")

FUNCTIONS: Mapping[Variant, tuple[str, ...]] = {
    "target": (),
    "pseudo_extended": (
        "geometric_path",
        "pseudo_extended_log_density",
        "pseudo_extended_log_weight",
        "is_uniform",
        "log_inv_temp_density",
        "stratified_log_density",
    ),
    "continuously_tempered": (
        "geometric_path",
        "is_uniform",
        "piecewise_linear",
        "continuous_tempering_log_weight",
    ),
    "collapsed_tempered": _COLLAPSED,
    "collapsed_tempered_zero_likelihood": _COLLAPSED,
    "collapsed_pseudo_extended": (
        "log_tempered_mass",
        "inv_temp_rng",
        "pseudo_extended_log_density",
        "pseudo_extended_log_weight",
    ),
}

DATA: Mapping[Variant, tuple[str, ...]] = {
    "target": (),
    "pseudo_extended": ("g", "pseudo_samples"),
    "continuously_tempered": ("g", "inv_temp"),
    "collapsed_tempered": ("g", "ladder"),
    "collapsed_tempered_zero_likelihood": ("g", "ladder"),
    "collapsed_pseudo_extended": ("g", "ladder"),
}

_COLLAPSED_MODEL = """
target += log_base
  + log_tempered_mass(log_zeta - log_ratio, g_knot, log_g, ladder);
"""

MODEL: Mapping[Variant, str] = {
    "target": "target += log_base + log_ratio;",
    "pseudo_extended": """
vector[N] beta = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
vector[N] log_gamma = log_base + log_ratio;
vector[N] log_q = geometric_path(log_gamma, log_base, log_zeta, beta);
if (!uniform_pi) {
  log_gamma += log_inv_temp_density(beta, pi_knot, log_pi, pi_shape);
}
if (!uniform_g) {
  log_q += log_inv_temp_density(beta, g_knot, log_g, g_shape);
}
target += pseudo_extended_log_density(log_gamma, log_q);
if (g_correlation != 0) {
  target += stratified_log_density(
    (free_inv_temp - g_knot[1]) / (1 - g_knot[1]), g_correlation);
}
""",
    "continuously_tempered": """
real beta = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
target += geometric_path(log_base + log_ratio, log_base, log_zeta, beta);
if (!uniform_g) {
  target += sum(piecewise_linear([beta]', g_knot, log_g));
}
""",
    "collapsed_tempered": _COLLAPSED_MODEL,
    "collapsed_tempered_zero_likelihood": _COLLAPSED_MODEL,
    "collapsed_pseudo_extended": """
vector[N] log_q = log_base;
for (i in 1 : N) {
  log_q[i] += log_tempered_mass(log_zeta - log_ratio[i], g_knot, log_g, ladder);
}
target += pseudo_extended_log_density(log_base + log_ratio, log_q);
""",
}

_COLLAPSED_GENERATED = """
real delta = log_zeta - log_ratio; // log b + log zeta - log gamma
real inv_temp = inv_temp_rng(delta, g_knot, log_g, ladder);
vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot, log_g, ladder);
"""

GENERATED: Mapping[Variant, str] = {
    "target": "",
    "pseudo_extended": """
vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
vector[N] delta = log_zeta - log_ratio; // log b + log zeta - log gamma
vector[N] log_weight;
{
  vector[N] log_gamma = log_base + log_ratio;
  log_weight = pseudo_extended_log_weight(
    log_gamma + log_inv_temp_density(inv_temp, pi_knot, log_pi, pi_shape),
    geometric_path(log_gamma, log_base, log_zeta, inv_temp)
    + log_inv_temp_density(inv_temp, g_knot, log_g, g_shape));
}
""",
    "continuously_tempered": """
real inv_temp = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
real delta = log_zeta - log_ratio; // log b + log zeta - log gamma
vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot, log_g, 0);
""",
    "collapsed_tempered": _COLLAPSED_GENERATED,
    "collapsed_tempered_zero_likelihood": _COLLAPSED_GENERATED,
    "collapsed_pseudo_extended": """
vector[N] inv_temp; // drawn from its conditional under q
vector[N] delta = log_zeta - log_ratio; // log b + log zeta - log gamma
vector[N] log_weight;
{
  vector[N] log_q = log_base;
  for (i in 1 : N) {
    log_q[i] += log_tempered_mass(delta[i], g_knot, log_g, ladder);
    inv_temp[i] = inv_temp_rng(delta[i], g_knot, log_g, ladder);
  }
  log_weight = pseudo_extended_log_weight(log_base + log_ratio, log_q);
}
""",
}

FREE: Mapping[Variant, str] = {
    "target": "",
    "pseudo_extended": ("vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;"),
    "continuously_tempered": "vector<lower=0, upper=1>[sample_inv_temp] free_inv_temp;",
    "collapsed_tempered": "",
    "collapsed_tempered_zero_likelihood": "",
    "collapsed_pseudo_extended": "",
}

NUMBER = "int<lower=1> N; // number of pseudo-samples"

TRANSFORMED_DATA: Mapping[Variant, str] = {
    "pseudo_extended": """
int uniform_g = is_uniform(log_g, g_shape);
int uniform_pi = is_uniform(log_pi, pi_shape);
""",
    "continuously_tempered": "int uniform_g = is_uniform(log_g, ones_vector(2));",
}
