"""`harness sample` on hostile programs, files, names and sizes: a fit or one clear sentence."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from stan_density import stanli

from harness.cli import main
from harness.engine.toolchain.tools import find_compiler
from harness.errors import DataError, StoreError, ToolchainError
from harness.fit import Fit
from harness.user import Method, UserFit, sample
from harness.user.generated import without_generated

assert stanli is not None

SHORT: dict[str, Any] = {"seed": 1, "chains": 2, "warmup": 60, "draws": 60, "progress": False}

REJECTS = """data { real y; }
transformed data { real c = normal_rng(0, 1); }
parameters { real a; }
transformed parameters { real double_a = 2 * a + c; }
model { a ~ normal(0, 1); y ~ normal(a, 1); }
generated quantities {
  real with_c = 2 * a + c;
  real root = sqrt(a - c);
  if (a > 0.5) reject("a is large");
  real last = a;
}
"""


OUT_OF_RANGE = REJECTS.replace(
    'if (a > 0.5) reject("a is large");', "real beyond = [a, a][a > 0.5 ? 3 : 1];"
)


def program(folder: Path, text: str, name: str = "program.stan") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def check_rejected(result: UserFit) -> None:
    """Parameters are whole; generated quantities are NaN just where the program rejects."""
    draws = {name: result.posterior[name].to_numpy() for name in result.posterior}
    rejected = draws["a"] > 0.5
    assert 0 < rejected.sum() < rejected.size
    assert [name for name in draws if name != "beyond"] == [
        "a",
        "double_a",
        "with_c",
        "root",
        "last",
    ]
    assert not np.isnan(draws["a"]).any()
    assert not np.isnan(draws["double_a"]).any()
    np.testing.assert_array_equal(np.isnan(draws["last"]), rejected)
    fine = ~rejected
    np.testing.assert_allclose(draws["last"][fine], draws["a"][fine], rtol=1e-9)
    # Random numbers of transformed data are the same for parameters and generated quantities.
    np.testing.assert_allclose(draws["with_c"][fine], draws["double_a"][fine], rtol=1e-9)
    (finding,) = (f for f in result.diagnosis if "NaN" in f.sentence)
    assert f"last in {rejected.sum()}" in finding.sentence
    assert "with_c" in finding.sentence
    assert not any("No chain has moved" in each.sentence for each in result.diagnosis)


METHODS: tuple[Method, ...] = ("nuts", "collapsed_tempering", "pseudo_extended")


@pytest.mark.parametrize("method", METHODS)
def test_rejected_generated_quantities_leave_parameters_alone(
    method: Method, tmp_path: Path
) -> None:
    path = program(tmp_path, REJECTS)
    result = sample(path, {"y": 0.3}, method=method, engine="stanli", **SHORT)
    check_rejected(result)
    result.save(tmp_path / "fit.nc")
    result.report(tmp_path / "fit.html")
    assert Fit.load(tmp_path / "fit.nc").parameters == ("a",)
    json.dumps(result.as_json(), allow_nan=False)


def test_auto_is_not_misled_by_rejected_generated_quantities(tmp_path: Path) -> None:
    """All draws are rejected, in generated quantities alone: NUTS misses nothing."""
    path = program(tmp_path, REJECTS.replace("(a > 0.5)", "(a > -1e9)"))
    settings = SHORT | {"warmup": 500, "draws": 500}
    result = sample(path, {"y": 0.3}, method="auto", engine="stanli", **settings)
    assert result.method == "nuts"
    assert np.isnan(result.posterior["last"]).all()
    # The posterior is normal(0.15, 1 / 2); 100 effective draws at the very least.
    assert abs(float(result.posterior["a"].mean()) - 0.15) < 4 * np.sqrt(0.5 / 100)


@pytest.mark.compiled
def test_rejected_generated_quantities_in_cmdstan(tmp_path: Path) -> None:
    path = program(tmp_path, REJECTS)
    result = sample(path, {"y": 0.3}, method="nuts", engine="cmdstan", **SHORT)
    # CmdStan writes what was computed before the rejection.
    assert not np.isnan(result.posterior["a"]).any()
    rejected = result.posterior["a"].to_numpy() > 0.5
    np.testing.assert_array_equal(np.isnan(result.posterior["last"]), rejected)
    assert any(f"last in {rejected.sum()}" in each.sentence for each in result.diagnosis)


@pytest.mark.compiled
def test_errors_of_generated_quantities_that_end_cmdstan(tmp_path: Path) -> None:
    """An index out of range is no rejection for CmdStan: the whole run ends with it."""
    path = program(tmp_path, OUT_OF_RANGE)
    result = sample(path, {"y": 0.3}, method="nuts", engine="cmdstan", **SHORT)
    check_rejected(result)
    assert result.fit.tree.attrs["program"].endswith("original")


def test_generated_quantities_are_found_by_their_block_alone() -> None:
    before = (
        "// generated quantities {\n/* generated quantities { */ data { real y; }\n"
        'parameters { real generated; }\nmodel { print("generated quantities {"); }\n'
    )
    for block in ("generated quantities { real q = 1; }", "generated\n  quantities{}"):
        assert without_generated(before + block) == before
    assert without_generated(before) == before


NORMAL = "data { real y; } parameters { real mu; } model { mu ~ normal(0, 1); y ~ normal(mu, 1); }"


def invoke(*arguments: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def invoke_sample(path: Path, *arguments: str | Path) -> tuple[int, str, str]:
    short = ("--chains", "2", "--warmup", "20", "--draws", "20", "--method", "nuts")
    return invoke("sample", path, "--engine", "stanli", *short, *arguments)


@pytest.fixture
def normal(tmp_path: Path) -> tuple[Path, Path]:
    data = tmp_path / "d.json"
    data.write_text('{"y": 0.5}')
    return program(tmp_path, '#include "included.stan"', "m.stan"), data


@pytest.fixture(autouse=True)
def included(tmp_path: Path) -> Path:
    return program(tmp_path, NORMAL, "included.stan")


def refused(done: tuple[int, str, str], message: str) -> None:
    code, stdout, stderr = done
    assert code == 1
    assert stdout == ""
    # Refused before anything ran: nothing is said of progress.
    assert stderr.startswith("harness: ")
    assert len(stderr.splitlines()) == 1
    assert message in stderr


def test_outputs_never_replace_inputs(
    normal: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = normal
    (tmp_path / "link.nc").symlink_to(data)
    (tmp_path / "folder").mkdir()
    os.link(path, tmp_path / "hard.html")
    monkeypatch.chdir(tmp_path / "folder")
    before = {each: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()}
    for force in ((), ("--force",)):
        for option, target in (
            ("--out", path),
            ("--out", data),
            ("--report", path),
            ("--report", "../m.stan"),
            ("--out", tmp_path / "folder" / ".." / "d.json"),
            ("--out", tmp_path / "link.nc"),
            ("--report", tmp_path / "hard.html"),
            ("--report", tmp_path / "included.stan"),
        ):
            done = invoke_sample(path, "--data", data, option, target, *force)
            refused(done, "would replace the input")
        refused(invoke("temper", path, "-o", path, *force), "would replace the input")
    same = invoke_sample(path, "--data", data, "--out", "x", "--report", "../folder/x")
    refused(same, "name the same file")
    assert before == {each: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()}


def test_outputs_replace_only_what_harness_wrote(normal: tuple[Path, Path], tmp_path: Path) -> None:
    path, data = normal
    fit, page, tempered = (tmp_path / name for name in ("fit.nc", "page.html", "tempered.stan"))
    calls: tuple[Any, ...] = (
        lambda *more: invoke_sample(path, "--data", data, "--out", fit, *more),
        lambda *more: invoke_sample(path, "--data", data, "--report", page, *more),
        lambda *more: invoke("temper", path, "-o", tempered, *more),
    )
    for output, call in zip((fit, page, tempered), calls, strict=True):
        output.write_text("my notes")
        refused(call(), "--force")
        assert output.read_text() == "my notes"
        assert call("--force")[0] == 0
        written = output.read_bytes()
        assert written != b"my notes"
        assert call()[0] == 0, "what harness wrote is replaced"
        output.write_bytes(b"")
        assert call()[0] == 0, "an empty file has nothing to lose"
    # Each is ours, but none is of the other kinds.
    refused(invoke_sample(path, "--data", data, "--out", page), "--force")
    refused(invoke_sample(path, "--data", data, "--report", fit), "--force")
    refused(invoke("temper", path, "-o", fit), "--force")


def test_unusable_outputs_are_refused_before_sampling(
    normal: tuple[Path, Path], tmp_path: Path
) -> None:
    path, data = normal
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "file" / "fit.nc", Path("/dev/null"), tmp_path / ("n" * 300)):
        for option in ("--out", "--report"):
            done = invoke_sample(path, "--data", data, option, target)
            refused(done, f"cannot write {target}")
        refused(invoke("temper", path, "-o", target), f"cannot write {target}")
    assert invoke_sample(path, "--data", data, "--out", tmp_path)[0] == 2  # click refuses folders
    # A folder that is missing is made.
    out = tmp_path / "new" / "folder" / "fit.nc"
    assert invoke_sample(path, "--data", data, "--out", out)[0] == 0
    assert Fit.load(out).parameters == ("mu",)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_in(normal: tuple[Path, Path], tmp_path: Path) -> None:
    path, data = normal
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    refused(invoke_sample(path, "--data", data, "--out", locked / "fit.nc"), "cannot write")


def write_bytes(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


NOT_TEXT = {
    "binary": bytes(range(256)) * 20,
    "utf-16": ("\ufeff" + NORMAL).encode("utf-16-le"),
    "utf-16, no mark": NORMAL.encode("utf-16-be"),
    "latin-1": ("// café\n" + NORMAL).encode("latin-1"),
}


@pytest.mark.parametrize("case", NOT_TEXT)
def test_programs_that_are_not_text(case: str, tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "strange.stan", NOT_TEXT[case])
    for done in (invoke_sample(path), invoke("temper", path)):
        code, _, stderr = done
        assert code == 1
        last = stderr.splitlines()[-1]
        assert f"harness: the Stan program {path} is not text in UTF-8" in last
    write_bytes(tmp_path, "included.stan", NOT_TEXT[case])
    outer = program(tmp_path, '#include "included.stan"', "outer.stan")
    code, _, stderr = invoke_sample(outer)
    assert code == 1
    assert "included.stan" in stderr
    assert "data" not in stderr.splitlines()[-1]


def test_a_program_whose_name_looks_like_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program(tmp_path, NORMAL, "-x.stan")
    Path("d.json").write_text('{"y": 1}')
    assert invoke("temper", "--", "-x.stan")[0] == 0
    settings = ("--chains", "2", "--warmup", "20", "--draws", "20", "--engine", "stanli")
    for method in ("nuts", "collapsed_tempering"):
        arguments = ("--data", "d.json", "--method", method, "--out", "-fit.nc", *settings)
        assert invoke("sample", *arguments, "--", "-x.stan")[0] == 0
    assert Fit.load(Path("-fit.nc")).parameters == ("mu",)


BAD_JSON = {
    "nested": ('{"y": ' + "[" * 3000 + "]" * 3000 + "}", "nested too deeply"),
    "deeper": ('{"y": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    "twice": ('{"y": 1, "y": 2}', "gives y twice"),
    "twice within": ('{"y": 1, "z": {"b": 1, "b": 1}}', "gives b twice"),
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_hostile_json(case: str, tmp_path: Path) -> None:
    text, message = BAD_JSON[case]
    data = program(tmp_path, text, "data.json")
    code, _, stderr = invoke_sample(program(tmp_path, NORMAL), "--data", data)
    assert code == 1
    assert stderr.splitlines()[-1].startswith(f"harness: {data} ")
    assert message in stderr


def test_json_with_a_byte_order_mark(tmp_path: Path) -> None:
    data = write_bytes(tmp_path, "data.json", '\ufeff{"y": 1}'.encode())
    assert invoke_sample(program(tmp_path, NORMAL), "--data", data)[0] == 0


def test_a_compiler_with_an_unmatched_quote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "g++ 'x")
    with pytest.raises(ToolchainError, match="no closing quotation"):
        find_compiler()
    assert invoke("doctor")[0] == 1
    data = program(tmp_path, '{"y": 1}', "data.json")
    assert invoke_sample(program(tmp_path, NORMAL), "--data", data)[0] == 0


EMPTY = """data { int N; real y; }
parameters { real a; vector[N] v; matrix[2, N] w; }
transformed parameters { vector[N] twice = 2 * v; }
model { a ~ normal(0, 1); v ~ normal(0, 1); to_vector(w) ~ normal(0, 1); y ~ normal(a, 1); }
generated quantities { real q = a; vector[N] none; }
"""


@pytest.mark.parametrize("method", ["auto", "nuts", "collapsed_tempering", "pseudo_extended"])
def test_parameters_without_values_are_left_out(method: Method, tmp_path: Path) -> None:
    path = program(tmp_path, EMPTY)
    result = sample(path, {"N": 0, "y": 1}, method=method, engine="stanli", **SHORT)
    result.save(tmp_path / "fit.nc")
    result.report(tmp_path / "fit.html")
    saved = Fit.load(tmp_path / "fit.nc")
    assert saved.parameters == ("a",)
    assert list(saved.posterior) == ["a", "q"]
    assert not any("Missing" in each.sentence for each in result.diagnosis)


def test_without_any_value_there_is_nothing_to_sample(tmp_path: Path) -> None:
    text = "data { int N; } parameters { vector[N] v; } model { v ~ normal(0, 1); }"
    for method in METHODS:
        with pytest.raises(DataError, match="no parameter has a value, so there is nothing"):
            sample(program(tmp_path, text), {"N": 0}, method=method, engine="stanli", **SHORT)
    with pytest.raises(DataError, match="has no parameters, so that there is nothing to sample"):
        sample(program(tmp_path, "model { }"), method="nuts", engine="stanli", **SHORT)


AXES = {
    "chain": "real chain;",
    "draw": "vector[2] draw;",
    "x_dim_0": "vector[2] x; real x_dim_0;",
    "pseudo_sample": "real pseudo_sample;",
}


@pytest.mark.parametrize("name", AXES)
@pytest.mark.parametrize("block", ["data", "parameters", "generated quantities"])
def test_names_of_axes_are_refused_before_sampling(name: str, block: str, tmp_path: Path) -> None:
    blocks = {"data": "", "parameters": "real a;", "generated quantities": ""}
    blocks[block] += AXES[name]
    text = (
        f"data {{ {blocks['data']} }} parameters {{ {blocks['parameters']} }} "
        f"model {{ a ~ normal(0, 1); }} generated quantities {{ {blocks['generated quantities']} }}"
    )
    given = {"chain": 1, "draw": [1, 2], "x": [1, 2], "x_dim_0": 3, "pseudo_sample": 1}
    with pytest.raises(DataError, match=f"has the name {name}, so no variable can have it"):
        sample(program(tmp_path, text), given, method="nuts", engine="stanli", **SHORT)


def test_words_of_cpp_as_names(tmp_path: Path) -> None:
    """Stanli gives such variables names of its own; those of parameters it cannot read back."""
    later = NORMAL + " generated quantities { real class = mu; vector[2] new = [1, mu]'; }"
    result = sample(program(tmp_path, later), {"y": 1}, method="nuts", engine="stanli", **SHORT)
    assert list(result.posterior) == ["mu", "class", "new"]
    np.testing.assert_allclose(result.posterior["class"], result.posterior["mu"], rtol=1e-9)
    path = program(tmp_path, NORMAL.replace("mu", "class"))
    for method in METHODS:
        with pytest.raises(DataError, match="parameter class, whose name is a word of C"):
            sample(path, {"y": 1}, method=method, engine="stanli", **SHORT)


def test_nothing_to_temper(tmp_path: Path) -> None:
    path = program(tmp_path, "parameters { real x; } model { x ~ normal(0, 1); }")
    assert sample(path, method="nuts", engine="stanli", **SHORT).method == "nuts"
    for method in ("collapsed_tempering", "pseudo_extended"):
        whole = [
            sample(path, method=method, what=what, engine="stanli", **SHORT)
            for what in ("likelihood", "all")
        ]
        assert [each.method for each in whole] == [method, method]
        xr.testing.assert_identical(whole[0].posterior, whole[1].posterior)
        assert any("gives data a density" in each.sentence for each in whole[0].diagnosis)
    flat = program(tmp_path, "parameters { real<lower=0, upper=1> x; } model { }", "flat.stan")
    with pytest.raises(DataError, match="no statement to temper") as caught:
        sample(flat, method="collapsed_tempering", what="all", engine="stanli", **SHORT)
    assert "--temper" not in str(caught.value)


PRINTS = """data { real y; }
transformed data { print("in transformed data"); }
parameters { real a; }
model { print("a = ", a); a ~ normal(0, 1); y ~ normal(a, 1); }
"""


@pytest.mark.parametrize("command", ["sample", "evidence", "compare"])
def test_what_a_program_prints_is_not_shown(command: str, tmp_path: Path) -> None:
    """C++ has buffers of its own, so only another process shows what is left in them."""
    path = program(tmp_path, PRINTS)
    (tmp_path / "data.json").write_text('{"y": 0.3}')
    other = program(tmp_path, PRINTS.replace("a, 1", "a, 2"), "other.stan")
    models = {"evidence": ["--model", str(path)], "compare": [str(path), str(other)]}
    options = ["--data", str(tmp_path / "data.json"), "--engine", "stanli", "--json"]
    ended = subprocess.run(
        [sys.executable, "-m", "harness", command, *models.get(command, [str(path)]), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert isinstance(json.loads(ended.stdout), dict)
    assert "a = " not in ended.stderr
    assert "in transformed data" not in ended.stderr


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    path = program(folder, NORMAL)
    given: dict[str, Any] = {"y": 1.0}
    result = sample(path, given, method="collapsed_tempering", engine="stanli", **SHORT)
    result.save(folder / "fit.nc")
    return folder / "fit.nc"


HOSTILE: dict[str, dict[str, Any]] = {
    "no settings": {"settings": None},
    "settings are no JSON": {"settings": "{"},
    "settings are a list": {"settings": "[]"},
    "settings are a number": {"settings": 3},
    "parameters are an object": {"parameters": '{"nosuch": 1}'},
    "parameters are numbers": {"parameters": "[1]"},
    "no such parameter": {"parameters": '["nosuch"]'},
    "deep parameters": {"parameters": "[" * 100_000},
    "format is an array": {"format": np.arange(3)},
    "weighting": {"weighting": "by eye"},
    "weighting is a number": {"weighting": 7},
    "log evidence is text": {"log_evidence": "much", "log_evidence_mcse": 0.1},
    "log evidence has no error": {"log_evidence": 0.1},
    "gradients are text": {"gradients_sampling": "many"},
    "method is a number": {"method": 3},
    "no method": {"method": None},
    "no text": {"programs": np.bytes_(b'[["p.stan", "real \x81"]]')},
    "coordinates": {"_FillValue": "x", "dtype": "nonsense", "coordinates": 5},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_attributes_of_a_stored_fit(case: str, saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "fit.nc"
    shutil.copy(saved, path)
    with h5py.File(path, "r+") as file:
        for name, value in HOSTILE[case].items():
            file.attrs.pop(name, None)
            if value is not None:
                file.attrs[name] = value
    if case == "coordinates":
        Fit.load(path)  # means nothing at the root
        return
    with pytest.raises(StoreError) as caught:
        Fit.load(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_hostile_attributes_of_variables(saved: Path, tmp_path: Path) -> None:
    """Xarray decodes times and scales by attributes, which may make no sense."""
    attributes = {"dtype": "x", "_FillValue": "y", "scale_factor": "z", "calendar": 1}
    for name, value in attributes.items():
        path = tmp_path / f"{name}.nc"
        shutil.copy(saved, path)
        with h5py.File(path, "r+") as file:
            file["posterior/mu"].attrs[name] = value
            file["posterior/mu"].attrs["units"] = "days since never"
        with pytest.raises(StoreError, match=re.escape(str(path))) as caught:
            Fit.load(path)
        assert len(str(caught.value).splitlines()) == 1


TOO_LARGE: dict[str, tuple[dict[str, Any], str]] = {
    "chains": ({"chains": 10**9}, "from 1 to 1,000 chains; got 1000000000"),
    "no chains": ({"chains": 0}, "from 1 to 1,000 chains; got 0"),
    "half a chain": ({"chains": 2.5}, "a whole number of chains; got 2.5"),
    "draws": ({"draws": 2**32 + 100}, "draws; got 4294967396"),
    "warm-up": ({"warmup": 2**31}, "warm-up iterations; got 2147483648"),
    "pseudo-samples": ({"num_pseudo_samples": 10**9}, "from 2 to 1,000 pseudo-samples"),
    "together": ({"chains": 1000, "draws": 10**7}, "GB of memory"),
    "with its quantities": ({"chains": 100, "draws": 10**6}, "with 50,002 numbers each need"),
}


@pytest.mark.parametrize("case", TOO_LARGE)
def test_runs_that_would_not_fit(case: str, tmp_path: Path) -> None:
    settings, message = TOO_LARGE[case]
    text = NORMAL + " generated quantities { real q = mu; vector[50000] many; }"
    path = program(tmp_path, text)
    with pytest.raises(DataError, match=re.escape(message)):
        sample(path, {"y": 1}, method="nuts", engine="stanli", **SHORT | settings)


def test_the_command_line_has_the_same_bounds() -> None:
    path = Path("never_read.stan")
    for option, least, most in (
        ("--chains", 1, 1000),
        ("--warmup", 20, 10**7),
        ("--draws", 4, 10**7),
        ("--pseudo-samples", 2, 1000),
    ):
        for value in (least - 1, most + 1):
            code, _, stderr = invoke("sample", path, option, str(value))
            assert code == 2
            assert f"{least}<=x<={most}" in stderr


LOOPS = """data { real y; } parameters { real x; }
model { real s = 1; while (s > 0) { s += 1 + square(x); } y ~ normal(x, 1); }
"""
STUCK = """
import sys
from pathlib import Path
from harness.user import sample
from harness.user.deadline import stoppable
limit = float(sys.argv[2]) or None
with stoppable(limit, patience=1):
    print("begin", flush=True)
    sample(Path(sys.argv[1]), {"y": 1}, method="nuts", engine="stanli", seed=1, progress=False)
"""


@pytest.mark.parametrize("how", ["time limit", "interrupt"])
def test_an_endless_loop_is_ended(how: str, tmp_path: Path) -> None:
    path = program(tmp_path, LOOPS)
    command = [sys.executable, "-c", STUCK, str(path), "2" if how == "time limit" else "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begin\n"
            time.sleep(1)
            if how == "interrupt":
                process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    limit = how == "time limit"
    assert process.returncode == (1 if limit else 130)
    assert said.endswith(
        "harness: stopped at the time limit of 2 s\n" if limit else "interrupted\n"
    )


def test_a_time_limit_of_the_whole_command(normal: tuple[Path, Path], tmp_path: Path) -> None:
    path, data = normal
    long = ("--draws", "10000000", "--chains", "1", "--method", "nuts", "--engine", "stanli")
    out = tmp_path / "fit.nc"
    began = time.monotonic()
    code, stdout, stderr = invoke(
        "sample", path, "--data", data, *long, "--out", out, "--time-limit", "1"
    )
    assert time.monotonic() - began < 15, "it ends at the limit, not when the run is done"
    assert code == 1
    assert stdout == ""
    assert stderr.splitlines()[-1] == "harness: stopped at the time limit of 1 s"
    assert not out.exists()
    assert invoke_sample(path, "--data", data, "--out", out, "--time-limit", "100")[0] == 0
    assert out.exists()


def test_a_fault_of_ours_in_rewriting_is_one_of_our_errors(
    normal: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = normal

    def faulty(*_: object, **__: object) -> None:
        raise AssertionError("what was written is not valid:\nline 1\nline 2")

    monkeypatch.setattr("harness.temper.program.write_program", faulty)
    for done in (
        invoke("temper", path),
        invoke_sample(path, "--data", data, "--method", "collapsed_tempering"),
    ):
        code, _, stderr = done
        assert code == 1
        assert "cannot rewrite this program, which is a fault of harness" in stderr.splitlines()[-1]
    # NUTS needs nothing rewritten, and auto keeps its draws.
    assert invoke_sample(path, "--data", data)[0] == 0
    code, stdout, _ = invoke_sample(path, "--data", data, "--method", "auto")
    assert code == 0
    assert "cannot rewrite this program" in stdout
