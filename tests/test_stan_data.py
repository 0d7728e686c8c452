"""Data reach Stan as numbers and arrays, whatever they were, in either engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cmdstanpy
import numpy as np
import pytest
from stan_density import stanli

from harness.engine.stan_data import numbers_in, plain_data

GIVEN: dict[str, Any] = {
    "number": 3,
    "real": np.float64(0.1),
    "integer": np.int64(7),
    "switch": True,
    "switches": [True, False],
    "pair": (1, 2),
    "rows": [[1.5, 2.5], [3.5, 4.5]],
    "numbers": [np.float64(1 / 3), np.float64(1e-300)],
    "integers": np.array([[1, 2], [3, 4]], dtype=np.int32),
    "nothing": np.empty(0),
    "no columns": np.empty((2, 0)),
    "tuple": {"1": 2.5, "2": (1, 2)},
    "tuples": [{"1": True, "2": {"1": 0.5, "2": [1]}}, {"1": 2, "2": {"1": 1.5, "2": [3]}}],
}
EXPECTED: dict[str, Any] = {
    "number": 3,
    "real": 0.1,
    "integer": 7,
    "switch": 1,
    "switches": [1, 0],
    "pair": [1, 2],
    "rows": [[1.5, 2.5], [3.5, 4.5]],
    "numbers": [1 / 3, 1e-300],
    "integers": [[1, 2], [3, 4]],
    "nothing": [],
    "no columns": [[], []],
    "tuple": {"1": 2.5, "2": [1, 2]},
    "tuples": [{"1": 1, "2": {"1": 0.5, "2": [1]}}, {"1": 2, "2": {"1": 1.5, "2": [3]}}],
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_cmdstan_reads(name: str, tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    cmdstanpy.write_stan_json(str(path), plain_data({name: GIVEN[name]}))
    read = json.loads(path.read_text())[name]
    assert read == EXPECTED[name]
    assert json.dumps(read) == json.dumps(EXPECTED[name])  # 1 and not true, 3 and not 3.0


def test_what_stanli_reads() -> None:
    """A program that rejects all data but the right ones."""
    code = """
    data {
      int number, switch;
      real real_value;
      array[2] int switches, pair;
      matrix[2, 2] rows;
      vector[2] numbers;
      array[2, 2] int integers;
      vector[0] nothing;
    }
    transformed data {
      array[2, 2] int counting = {{1, 2}, {3, 4}};
      if (number != 3 || switch != 1 || switches[1] != 1 || switches[2] != 0
          || pair[2] != 2 || rows[1, 2] != 2.5 || rows[2, 1] != 3.5
          || numbers[1] != 1.0 / 3 || numbers[2] != 1e-300 || real_value != 0.1
          || integers[1, 2] != counting[1, 2] || integers[2, 1] != counting[2, 1]) {
        reject("wrong data");
      }
    }
    parameters { real x; }
    model { x ~ std_normal(); }
    """
    # No names of Stan's, or not wanted, or unknown to stanli.
    unknown = ("real", "integer", "no columns", "tuple", "tuples")
    kept = {name: value for name, value in GIVEN.items() if name not in unknown}
    kept["real_value"] = GIVEN["real"]
    stanli.Model(stan_code=code, data=plain_data(kept))
    with pytest.raises(RuntimeError, match="wrong data"):
        stanli.Model(stan_code=code, data=plain_data({**kept, "pair": (2, 1)}))


def test_numbers_in_tuples_have_names() -> None:
    found = [(name, array.tolist()) for name, array in numbers_in("t", GIVEN["tuples"])]
    assert found == [
        *(("t[1].1", True), ("t[1].2.1", 0.5), ("t[1].2.2", [1])),
        *(("t[2].1", 2), ("t[2].2.1", 1.5), ("t[2].2.2", [3])),
    ]
    assert [name for name, _ in numbers_in("rows", GIVEN["rows"])] == ["rows"]
    assert [array.size for _, array in numbers_in("nothing", [])] == [0]
