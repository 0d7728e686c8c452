"""The report's diagnosis of a cell: the same sentences as a fit's own, and its pictures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from test_diagnosis import pseudo_fit, tempered_fit

from harness.experiment.spec import Cell, Results
from harness.fit import Fit, pooled
from harness.methods.continuous_tempering import CONTINUOUS_TEMPERING
from harness.models.gaussian_mixture import GaussianMixture
from harness.nuts import NutsSettings
from harness.report.diagnosis import diagnose_cell

MIXTURE = GaussianMixture(np.array([1.0]), np.array([[0.5]]), np.array([0.6]))
CELL = Cell(
    key="cell",
    label="a cell",
    factors={},
    model=MIXTURE.model("one", lower=-25, upper=25),
    method=CONTINUOUS_TEMPERING,
    settings={},
    nuts=NutsSettings(),
    replications=2,
)


@pytest.mark.parametrize(
    ("make", "pictures"),
    [
        (tempered_fit, ["ranks", "ess", "inverse-temperatures"]),
        (pseudo_fit, ["ranks", "ess", "inverse-temperatures", "weights"]),
    ],
)
def test_facts_are_the_findings_of_all_replications(
    make: Callable[[int], Fit], pictures: list[str]
) -> None:
    fits = [make(seed).thinned(100) for seed in (1, 2)]
    results = Results(
        profile="quick",
        cells=(CELL,),
        metrics=pd.DataFrame({"cell": ["cell", "cell"], "replication": [0, 1]}),
        load=lambda _, replication: fits[replication],
        planned=2,
    )
    diagnosis = diagnose_cell(results, CELL)
    findings = pooled(fits).diagnose()
    assert diagnosis.facts == (
        *(str(each) for each in findings),
        "7 leapfrog steps a draw on average.",
    )
    assert [figure.name for figure in diagnosis.figures] == [f"cell-{name}" for name in pictures]
    assert all(figure.image.startswith((b"<?xml", b"\x89PNG")) for figure in diagnosis.figures)
    assert len(diagnosis.summary) == 3
