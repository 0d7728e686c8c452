"""A fit's page: what is on it for each kind of fit, and what its pictures are drawn from."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from test_diagnosis import attrs_of, pseudo_fit, settings_of, stats_of, target_fit, tempered_fit
from test_fit import make_fit

from harness.diagnosis import diagnose
from harness.engine.compile import source_digest
from harness.errors import StoreError
from harness.fit import Fit, build_fit
from harness.models.gaussian_mixture import kou_mixture
from harness.models.radon import load_radon, radon
from harness.report import FitReport
from harness.report.columns import Columns, worst_columns
from harness.report.draw_figures import draw_figures, rank_band, rank_differences, traces
from harness.report.fit_page import build_fit_page
from harness.report.path_figures import path_figures
from harness.report.program_text import program_text
from harness.report.style import COLOURS, METHODS, media_type, method_style

PATH = ["inv-temp-density", "inv-temp-traces", "weights", "base-moments", "log-evidence"]
DRAWN = ["traces", "ranks", "ess"]


def nuts_fit(seed: int = 1) -> Fit:
    return target_fit(np.random.default_rng(seed).normal(size=(4, 300, 3)))


@pytest.mark.parametrize(
    ("fit", "path"),
    [
        (tempered_fit(), PATH),
        (pseudo_fit(), PATH),
        (pseudo_fit(normalised_base=False, base=None), PATH[:3]),
        (nuts_fit(), []),
        (make_fit(), []),  # eight draws
    ],
    ids=["continuous", "pseudo-extended", "no base", "target", "few draws"],
)
def test_what_a_fit_does_not_have_is_left_out(fit: Fit, path: list[str], tmp_path: Path) -> None:
    page = build_fit_page(fit)
    assert [figure.name for figure in page.path_figures] == path
    drawn = [figure.name for figure in page.draw_figures]
    assert drawn == (DRAWN if fit.posterior.sizes["draw"] > 100 else DRAWN[:1])
    for figure in (*page.draw_figures, *page.path_figures):
        assert figure.image.startswith((b"<?xml", b"\x89PNG"))
        assert len(figure.image) < 300_000
        assert len(figure.caption) > 60
        assert figure.alt_text.endswith(".")
    assert list(page.findings) == diagnose(fit)
    FitReport(fit).save(tmp_path / "new" / "page.html")
    html = (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!data:|#)', html)
    assert html.count("<img") == len(page.draw_figures) + len(page.path_figures)
    assert ("log Z" in page.evidence) == ("log-evidence" in path)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("seed", "{}"),
        ("kept_every", "é"),
        ("programs", '[["a.stan", "param'),
        ("programs", "[7]"),
        ("modes", "[]"),
        ("modes", "{"),
        ("findings", "null"),
        ("findings", "[[0]]"),
        ("findings", '[["x", "y", "z"]]'),
    ],
)
def test_a_damaged_attribute_is_named(name: str, kept: str) -> None:
    fit = make_fit()
    fit.tree.attrs[name] = kept
    with pytest.raises(StoreError, match=f"the fit's {name} is damaged"):
        build_fit_page(fit)


def test_fixed_inverse_temperatures_are_not_drawn() -> None:
    fit = pseudo_fit(inv_temp=0.5)
    assert fit.extended is not None
    fit.tree["extended"]["inv_temp"] = xr.full_like(fit.extended["inv_temp"], 0.5)
    assert [figure.name for figure in path_figures(fit)] == ["weights"]


def test_draws_off_the_plateau_have_no_weight() -> None:
    rng = np.random.default_rng(3)
    log_w1 = np.where(rng.random((2, 400)) < 0.25, 0.0, -np.inf)
    x = rng.normal(size=(2, 400, 1))
    fit = build_fit(
        posterior={"x": x},
        extended={"x": x, "u": x[..., 0], "inv_temp": rng.random((2, 400)), "log_w1": log_w1},
        sample_stats={"lp": np.zeros((2, 400))},
        constant_data={},
        attrs=attrs_of("extended_hamiltonian", settings_of(base=None), 2),
        pseudo_samples=False,
    )
    figures = {figure.name: figure for figure in path_figures(fit)}
    assert list(figures) == PATH[:3]
    lost = 1 - np.isfinite(log_w1).mean()
    assert f"{lost:.0%} of the draws have no weight" in figures["weights"].caption


def test_the_worst_coordinates_are_chosen_and_named() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 400, 2, 3))
    x[0, :, 1, 2] += 3
    x[0, :, 0, 1] += 1
    fit = build_fit(
        posterior={"scale": rng.gamma(2, size=(4, 400)), "x": x},
        extended=None,
        sample_stats=stats_of(rng),
        constant_data={},
        attrs=attrs_of("nuts", {}),
    )
    worst = worst_columns(fit.posterior, 2)
    assert worst.names == ("x[2, 3]", "x[1, 2]")
    assert worst.total == 7
    np.testing.assert_array_equal(worst.values, np.stack([x[..., 1, 2], x[..., 0, 1]], axis=-1))
    ordered = worst.in_order(fit.posterior)
    assert ordered.names == ("x[1, 2]", "x[2, 3]")
    np.testing.assert_array_equal(ordered.values, worst.values[..., ::-1])
    page = build_fit_page(fit, pictures=False, rows=2)
    assert list(page.summary.index) == ["x[1, 2]", "x[2, 3]"]
    assert page.summary["mean"].to_numpy() == pytest.approx(ordered.values.mean(axis=(0, 1)))
    assert "the 2 of 7 coordinates" in page.summary_caption


def test_the_worst_of_many_coordinates() -> None:
    """Those that R-hat of all would put first, among 500; of equal ones the first come first."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4, 300, 5, 100))
    x[0, :, 2, 7] += 3
    x[1, :, 4, 99] *= 5
    x[:, :, 0, 0] = x[:, :, 3, 3] = 1.0
    fit = target_fit(x)
    worst = worst_columns(fit.posterior, 2)
    assert worst.names == ("x[3, 8]", "x[5, 100]")
    assert worst.total == 500
    np.testing.assert_array_equal(worst.values, np.stack([x[..., 2, 7], x[..., 4, 99]], axis=-1))


def test_parameters_come_before_quantities() -> None:
    """Though these have the largest R-hat of hundreds, and figures are of parameters alone."""
    rng = np.random.default_rng(7)
    y_rep = (rng.random((4, 300, 200)) < 0.5).astype(float)
    y_rep[0, :, 3] = 1
    draws = {"mu": rng.normal(size=(4, 300)), "b": rng.normal(size=(4, 300, 2)), "y_rep": y_rep}
    fit = build_fit(
        posterior=draws,
        extended=None,
        sample_stats=stats_of(rng),
        constant_data={},
        attrs=attrs_of("nuts", {}) | {"parameters": '["mu", "b"]'},
    )
    worst = worst_columns(fit.posterior, 5, fit.parameters)
    assert set(worst.names[:3]) == {"mu", "b[1]", "b[2]"}
    assert worst.names[3] == "y_rep[4]"
    assert (len(worst.names), worst.total) == (5, 203)
    np.testing.assert_array_equal(worst.values[..., 3], y_rep[..., 3])
    page = build_fit_page(fit, rows=5)
    assert list(page.summary.index)[:3] == ["mu", "b[1]", "b[2]"]
    assert "y_rep[4]" in page.summary.index
    assert "5 of 203 coordinates" in page.summary_caption
    assert "of parameters before those of other quantities" in page.summary_caption
    assert all("y_rep" not in figure.caption for figure in page.draw_figures)
    assert list(build_fit_page(fit, pictures=False, rows=2).summary.index) == sorted(
        worst.names[:2], key=["mu", "b[1]", "b[2]"].index
    )


def test_coordinates_have_the_labels_that_the_model_knows() -> None:
    """Of a county its name; without labels, or with some of another length, Stan's numbers."""
    rng = np.random.default_rng(5)
    model = radon()
    fit = build_fit(
        posterior={
            "mu_a": rng.normal(size=(2, 40)),
            "n": rng.normal(size=(2, 40, 85)),
            "m": rng.normal(size=(2, 40, 2)),
        },
        extended=None,
        sample_stats=stats_of(rng),
        constant_data={},
        attrs=attrs_of("nuts", {}),
    )
    page = build_fit_page(fit, rows=100, labels=model.labels)
    names = list(page.summary.index)
    assert names[:3] == ["mu_a", "n[AITKIN]", "n[ANOKA]"]
    assert names[-2:] == ["m[first_floor]", "m[log_uranium]"]
    assert len(names) == 1 + 85 + 2
    mean = fit.posterior["n"].mean(("chain", "draw")).to_numpy()
    counties = load_radon().county_names
    found = page.summary.loc[[f"n[{county}]" for county in counties], "mean"]
    np.testing.assert_allclose(found, mean, rtol=1e-12)
    drawn = page.draw_figures[0].alt_text
    assert re.fullmatch(r"Traces of (\S+, ){2}\S+, one line per chain\.", drawn)
    assert not re.search(r"\[\d", drawn)
    plain = build_fit_page(fit, pictures=False, rows=100, labels={"n": ("one",), "other": ("two",)})
    assert list(plain.summary.index)[:3] == ["mu_a", "n[1]", "n[2]"]
    assert list(plain.summary.index)[-2:] == ["m[1]", "m[2]"]


def test_rank_differences_against_counting() -> None:
    values = np.random.default_rng(5).normal([[0.0], [0.5], [-0.2]], 1, (3, 40))
    found = rank_differences(values)
    everything = sorted(values.ravel())
    for chain in range(3):
        rank = np.array([everything.index(value) + 1 for value in values[chain]])
        for k in range(1, 50):
            share = np.mean(50 * rank <= 120 * k)
            assert found[chain, k - 1] == pytest.approx(share - k / 50, abs=1e-12)


@pytest.mark.parametrize(("chains", "draws"), [(2, 150), (4, 500)])
def test_the_rank_band_covers_as_it_says(chains: int, draws: int) -> None:
    """Of 1,000 sets of independent draws 94% are inside, within 4 standard errors (0.03).

    The band is that of the normal limit: with 150 draws the counts near the ends are small, which
    is within the same bound here.
    """
    rng = np.random.default_rng(7)
    band = rank_band(chains, draws)
    inside = [
        np.all(np.abs(rank_differences(rng.random((chains, draws)))) <= band) for _ in range(1000)
    ]
    assert np.mean(inside) == pytest.approx(0.94, abs=4 * np.sqrt(0.94 * 0.06 / 1000))


def test_a_single_chain_is_compared_with_itself() -> None:
    values = np.arange(10.0).reshape(1, 5, 2)
    halves = Columns(("a", "b"), values, 2).halves()
    np.testing.assert_array_equal(halves.values, np.stack([values[0, :2], values[0, -2:]]))
    many = Columns(("a",), np.zeros((3, 5, 1)), 1)
    assert many.halves() is many


def test_many_draws_of_many_chains_are_thinned_to_a_small_picture() -> None:
    columns = Columns(("a", "b", "c"), np.random.default_rng(1).normal(size=(20, 3000, 3)), 100)
    figure = traces(columns)
    assert media_type(figure.image) == "image/svg+xml"
    assert "One draw in 15 of the first 8 of 20 chains" in figure.caption
    assert "(the ones with the largest R-hat of 100 coordinates)" in figure.caption


def test_pictures_are_the_same_bytes_again() -> None:
    columns = worst_columns(nuts_fit().posterior, 2)
    assert [f.image for f in draw_figures(columns)] == [f.image for f in draw_figures(columns)]


def test_the_running_estimate_ends_at_the_fits_own() -> None:
    fit = tempered_fit()
    value, mcse = fit.log_evidence
    (figure,) = [f for f in path_figures(fit) if f.name == "log-evidence"]
    assert f"{value:.2f} ± {mcse:.2f} from all" in figure.caption


def test_the_stan_program_is_shown_if_it_is_the_one_that_ran() -> None:
    fit = nuts_fit()
    assert program_text(fit) is None
    program = kou_mixture("a").model("m", lower=-1, upper=12).program("target")
    digest = source_digest(program)
    fit.tree.attrs |= {"program": program.name, "program_sha256": digest}
    text = program_text(fit)
    assert text is not None
    assert text.files[0] == ("gaussian_mixture/target.stan", program.path.read_text())
    assert "density.stanfunctions" in " ".join(name for name, _ in text.files)
    fit.tree.attrs["program_sha256"] = "0" * 64
    text = program_text(fit)
    assert text is not None
    assert (text.digest, text.files) == ("0" * 64, ())


def test_settings_are_flat_and_short() -> None:
    page = build_fit_page(
        tempered_fit(matrix=np.eye(30).tolist(), nuts={"chains": 4, "metric": None}),
        pictures=False,
    )
    assert page.settings["matrix"] == "an array of 30 × 30 numbers"
    assert page.settings["nuts.chains"] == "4"
    assert page.settings["nuts.metric"] == "none"
    assert page.settings["log_g"] == "[[0, 0], [1, 0]]"
    assert page.cost.to_numpy()[-1].tolist() == [8.0, 8.0]


def test_a_notebook_sees_a_short_form() -> None:
    html = FitReport(tempered_fit())._repr_html_()
    assert "log Z" in html
    assert "Fine: The chains agree" in html
    assert "<table" in html
    assert "<img" not in html
    assert len(html) < 10_000


def test_every_method_has_its_own_look() -> None:
    looks = {(style.colour, style.marker) for style in METHODS.values()}
    assert len(looks) == len({style.colour for style in METHODS.values()}) == len(METHODS)
    assert method_style("nuts").colour == COLOURS[0]
    scouted = method_style("collapsed_tempering_from_pilot")
    assert scouted.colour == method_style("collapsed_tempering").colour
    assert scouted.label.endswith("from a pilot")
    assert method_style("a_new_one").label == "A new one"
