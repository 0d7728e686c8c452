"""Tempered programs keep the comments and the layout of the original, and only these."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from corpus_oracle import CORPUS
from doc_blocks import DOCS, blocks
from temper_fuzz import fuzz_program

from harness.engine.stanc import Stanc
from harness.engine.toolchain import require_stanc
from harness.temper.align import aligned, broken
from harness.temper.program import self_contained, temper, temper_each
from harness.temper.source import Token, comments, tokens, without_comments
from harness.temper.syntax import read_syntax
from harness.temper.templates import Variant
from harness.temper.tree import names

SCHOOLS = Path(__file__).parent / "fixtures" / "layout" / "schools.stan"
NAMES = sorted(path.stem for path in CORPUS.glob("*.stan") if path.stem != "no_data")
METHODS: list[Variant] = [each for each in get_args(Variant) if each != "prior"]
SAME = ("data", "transformed data", "parameters")
"""Blocks that stay as they are where there is one point."""

REWRITTEN = re.compile(
    r"~|target|jacobian|print|<|_l[pu]|^(simplex|unit_|cov_|corr_|cholesky_|(positive_)?ordered)"
)
"""Lines of the model that a written program may not have."""


@cache
def stanc() -> Stanc:
    return Stanc(require_stanc(), [CORPUS])


@cache
def written(path: Path, method: Variant) -> str:
    return temper(path, method=method, include_paths=(CORPUS,)).text


def method_of(name: str) -> Variant:
    """A method for each program, so that all methods have many."""
    return METHODS[NAMES.index(name) % len(METHODS)]


def text_of(name: str) -> str:
    """A program of the corpus, its includes written out."""
    text = (CORPUS / f"{name}.stan").read_text()
    return re.sub(
        r"^#include (\S+)\n", lambda line: (CORPUS / line[1]).read_text(), text, flags=re.MULTILINE
    )


def block_of(text: str, name: str) -> list[str]:
    """Lines within a block whose last brace is at the beginning of a line."""
    found = re.search(rf"^{name} \{{(.*?)^\}}", text, re.DOTALL | re.MULTILINE)
    return found[1].strip("\n").split("\n") if found else []


def are_in_order(some: list[str], others: list[str]) -> None:
    """Assert that lines are among others in their order."""
    rest = iter(others)
    for each in some:
        assert each in rest, each


def words(text: str) -> list[str]:
    """Tokens of a program in stanc's form, braces around all that loops hold."""
    result = stanc().canonical(without_comments(text))
    assert result is not None
    return [each.text for each in tokens(result)]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_tempered_stands_as_it_was(name: str) -> None:
    original, method = text_of(name), method_of(name)
    text = written(CORPUS / f"{name}.stan", method)
    original = original.partition("generated quantities {")[0]
    are_in_order(comments(original), comments(text))
    rows = [row.strip() for row in text.splitlines()]
    for block in SAME:
        if block == "parameters" and method.endswith("pseudo_extended"):
            continue
        own = block_of(original, block)
        where = block_of(text, block)
        if own:
            at = next(i for i, row in enumerate(where) if row.strip() == own[0].strip())
            assert [r.strip() for r in where[at : at + len(own)]] == [r.strip() for r in own]
    for block in ("transformed parameters", "model"):
        kept = [row.strip() for row in block_of(original, block)]
        are_in_order([row for row in kept if row and not REWRITTEN.search(row)], rows)


def commented(text: str, rng: np.random.Generator, *, every: int) -> tuple[str, list[str]]:
    """Put comments between some of a program's tokens; return them as well."""
    found = tokens(text)
    out, at, put = "", 0, list[str]()
    for number, token in enumerate(found[:-1]):
        out += text[at : token.stop]
        at = token.stop
        after = found[number + 1]
        # Two words that are one token to stanc, and a dot that must follow what it is of.
        if token.text in ("transformed", "generated") or after.text.startswith("."):
            continue
        if rng.integers(every):
            continue
        mark = f"note {len(put)}"
        kind = int(rng.integers(3))
        # A comment that decides what is tempered stays on its line.
        if comments(text[token.stop : after.start].partition("\n")[0]):
            kind = 0
        note = (f"/* {mark} */", f"// {mark}", f"/* {mark},\n   {mark} */")[kind]
        out += f" {note}" + ("\n" if kind == 1 else "")
        put.append(note)
    return out + text[at:], put


def check_comments(text: str, folder: Path, method: Variant, rng: np.random.Generator) -> None:
    """Temper a program with and without comments: the tokens are the same, the comments there."""
    plain, noted = folder / "plain.stan", folder / "noted.stan"
    plain.write_text(text)
    with_notes, put = commented(text, rng, every=4)
    noted.write_text(with_notes)
    texts = [temper(path, method=method).text for path in (plain, noted)]
    assert words(texts[0]) == words(texts[1])
    assert put
    outlines = [token.text for token in tokens(with_notes)]
    end = len(with_notes)
    if "generated" in outlines:
        end = next(each.start for each in tokens(with_notes) if each.text == "generated")
    wanted = [each for each in comments(with_notes[:end]) if each in put]
    if method != "prior":
        are_in_order(wanted, [*map(undented, comments(texts[1]))])


def undented(comment: str) -> str:
    """A comment whose second line is indented as those that were put in."""
    return re.sub(r"\n *", "\n   ", comment)


@pytest.mark.parametrize("name", NAMES)
def test_comments_anywhere(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng([31, NAMES.index(name)])
    check_comments(text_of(name), tmp_path, method_of(name), rng)


@pytest.mark.parametrize("name", NAMES[::6])
def test_comments_anywhere_in_a_prior(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng([32, NAMES.index(name)])
    check_comments(text_of(name), tmp_path, "prior", rng)


@pytest.mark.parametrize("seed", range(14))
def test_comments_anywhere_in_random_programs(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([33, seed])
    check_comments(fuzz_program(seed).text, tmp_path, METHODS[seed % len(METHODS)], rng)


def lines_between(text: str, first: str, last: str) -> str:
    """Text from a line that contains something to the next that contains something else."""
    rows = text.splitlines()
    start = next(i for i, row in enumerate(rows) if first in row)
    stop = next(i for i, row in enumerate(rows) if i > start and last in row)
    return "\n".join(rows[start : stop + 1]) + "\n"


FUNCTIONS = """\
  // own functions
  // Adds a prior, and says how many.
  real add_log_density(vector x, /* scale */ real s) { // head
    real lp = 0;
    lp += normal_lpdf(x | 0,    // zero
                          s);   // after
    if (s > 3) return lp; // early
    lp += -s;

    return lp; // the end of it
  }
  real add_value(vector x, real s) {
    if (s > 3) {
      return 1;
    }
    return 2;
  } // after the function

  real twice(real x){
      return 2*x;   // badly   formatted
  }
} // end of functions
"""

TRANSFORMED = """\
transformed parameters {
    // checked by Stan
    vector<lower=0>[n] spread; // each
  real<lower=0> v;
  real log_base;
  real log_gamma;
  {
    real log_prior = 0;
    real log_lik = 0;
    v = square(s); // variance
    vector[n] eta = mu        // intercept
                    + tau * y;  // slope
    spread = rep_vector(v, n);
    // The model
    // here
    // Priors
    log_prior += normal_lpdf(mu | 0, // m
                                  10);  log_prior += normal_lpdf(tau | 0, 1); // two on a line

    log_prior += log_mix(
      0.3,  // weight
      normal_lpdf(z | 0, 1),
      normal_lpdf(z | 5, 1)
    );
    log_prior += exponential_lpdf(s | 1);
    if (s < 0.1) {
      log_prior += negative_infinity();
    } else {
      log_prior += -exponential_lccdf(0.1 | 1);
    }  // truncated
    log_lik += add_log_density(y, // data
                               s);
    real r = add_value(y, s); // called
    // said

    /* Likelihood
       of the data */
    for (i in 1:n)   // each
        if (seen[i] /* seen? */) // yes
            log_lik += normal_lpdf(y[i] | eta[i], s); // exactly
        else // censored
            {
              log_lik += normal_lccdf(y[i] | eta[i], // at the bound
                                      s);
              log_prior += normal_lpdf(z | 0, 3);
            }
    // the end
    // end of model
"""

EACH = """\
parameters {
  // Pseudo-samples, one an element.
    array[N] real mu_each,   // mean
                  tau_each;  /* not a scale */ array[N] real z_each;

    // scale
    array[N] real<lower=0> s_each;   // positive
"""

PRIOR = """\
    // Priors
    target += normal_lpdf(mu | 0, // m
                               10);  target += normal_lpdf(tau | 0, 1); // two on a line
"""


def test_a_program_with_comments_everywhere() -> None:
    joint = written(SCHOOLS, "joint_tempering")
    assert lines_between(joint, "own functions", "end of functions") == FUNCTIONS
    assert lines_between(joint, "transformed parameters {", "end of model") == TRANSFORMED
    assert joint.splitlines()[4:8] == [
        "// Copyright: somebody.",
        "/* Eight schools,",
        "   and more. */",
        "functions {",
    ]
    assert joint.endswith("// bye\n")
    assert "gone" not in joint
    assert "} /* end\nof data */\n" in joint


def test_pseudo_samples_and_a_prior_with_comments() -> None:
    each = written(SCHOOLS, "pseudo_extended")
    assert lines_between(each, "parameters {", "// positive") == EACH
    prior = written(SCHOOLS, "prior")
    assert lines_between(prior, "// Priors", "two on a line") == PRIOR
    assert "// said" not in prior
    assert "data { int<lower=1> n; // how many" not in prior
    own = SCHOOLS.read_text()
    start, stop = own.index("// own functions"), own.index("parameters {")
    assert "real twice(real x){\n      return 2*x;   // badly   formatted" in prior
    assert set(comments(own[start:stop])) <= set(comments(prior))


def test_the_page_shows_what_is_written(tmp_path: Path) -> None:
    page = DOCS / "own-program.md"
    (shown,) = blocks(page, "diff")
    (program,) = blocks(page, "stan")
    path = tmp_path / "two_means.stan"
    path.write_text(program.text)
    for sign, text in (("-", program.text), ("+", temper(path).text)):
        rows = [row[1:] for row in shown.text.splitlines() if row[0] == sign]
        assert rows
        assert "\n".join(rows) in text


def test_braces_only_where_there_are_more_statements(tmp_path: Path) -> None:
    path = tmp_path / "program.stan"
    path.write_text(
        """data { int n; vector[n] y; }
parameters { real mu; }
model {
\tif (n > 2) if (n > 3) y ~ normal(mu, 1) T[mu, ]; else y ~ std_normal();
\tfor (i in 1:n)
\t\ty[i] ~ normal(mu,1);
\tif (n > 5) print("many"); else mu ~ normal(0, 1);
}
"""
    )
    text = temper(path, method="target").text
    assert (
        text[text.index("model") :]
        == """model {
\tif (n > 2) if (n > 3) {
\t  target += normal_lpdf(y | mu, 1);
\t  if (min(y) < mu) {
\t    target += negative_infinity();
\t  } else {
\t    target += -size(y) * normal_lccdf(mu | mu, 1);
\t  }
\t} else target += std_normal_lpdf(y);
\tfor (i in 1:n)
\t\ttarget += normal_lpdf(y[i] | mu, 1);
\tif (n > 5) { } else target += normal_lpdf(mu | 0, 1);
}
"""
    )


def test_includes_are_written_out_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "inner.stan").write_text("real b; // inner\n")
    (tmp_path / "outer.stan").write_text("real a; // outer\n  #include inner.stan\nreal c;\n")
    path = tmp_path / "program.stan"
    path.write_text(
        """data {
    #include outer.stan
    // after
}
parameters { real mu; }
model {
  mu ~ normal(a, b);
  c ~ normal(mu, 1);
}
"""
    )
    text = temper(path, method="target").text
    wanted = ["    real a; // outer", "      real b; // inner", "    real c;", "    // after"]
    assert block_of(text, "data") == wanted
    first, second = temper(path, method="target").statements
    assert (first.line, second.line) == (7, 8)


def test_places_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "likelihood.stan").write_text("// first\ny ~ normal(mu, 1);\n")
    path = tmp_path / "program.stan"
    path.write_text(
        "data { real y; }\nparameters { real mu; }\nmodel {\n#include likelihood.stan\n"
        "  mu ~ normal(0, 1);\n}\n"
    )
    first, second = temper(path, method="target").statements
    assert (Path(first.file).name, first.line) == ("likelihood.stan", 2)
    assert (Path(second.file), second.line) == (path, 5)


@pytest.mark.parametrize("name", NAMES)
def test_tokens_are_those_of_stanc(name: str) -> None:
    """Names and brackets in the order in which stanc's own lexer meets them."""
    path = CORPUS / f"{name}.stan"
    rows = [row.removeprefix("Lexer: ") for row in stanc().run(path, "--debug-lex").splitlines()]
    brackets = set("(){}[];,~")
    said = [row.removeprefix("identifier ") for row in rows if row.startswith("identifier ")]
    syntax = read_syntax(path, stanc())
    found = [each.text for each in syntax.source.tokens]
    rest = iter(found)
    assert all(each in rest for each in said)
    assert [each for each in found if each in brackets] == [row for row in rows if row in brackets]
    assert names(tuple(syntax.blocks.values())) <= set(found)


def test_every_statement_is_where_its_names_are() -> None:
    for name in NAMES:
        syntax = read_syntax(CORPUS / f"{name}.stan", stanc())
        for nodes in syntax.blocks.values():
            for node in nodes:
                place = syntax.places[id(node)]
                inside = {each.text for each in syntax.source.tokens[place.start : place.stop]}
                assert names(node) <= inside


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("y ~ normal(a, // b\n           c);", "l += normal_lpdf(y | a, c);",
         "l += normal_lpdf(y | a, // b\n                     c);"),
        ("target += f(\n  a);", "log_prior += f(a);", "log_prior += f(\n  a);"),
        ("y /* 1 */ ~ /* 2 */ n /* 3 */ (/* 4 */) /* 5 */;", "l += n_lpdf(y);",
         "l += n_lpdf(y /* 1 */ /* 2 */ /* 3 */ /* 4 */ ) /* 5 */;"),
        ("x = // 1\n  2;", "x = 2;", "x = // 1\n  2;"),
        ("f( // 1\n);", "g();", "g( // 1\n);"),
        ("f(a) // 1\n;", "", " // 1\n"),
    ],
)  # fmt: skip
def test_alignment(old: str, new: str, wanted: str) -> None:
    found = broken(aligned(old, new, 0, ""))
    assert found == wanted
    assert [each.text for each in tokens(found)] == [each.text for each in tokens(new)]


def test_tokens_of_awkward_text() -> None:
    text = 'x.1 = 1.5e-3 .* "// no" /* ; */ // ;\n %/% y\' ;'
    found = ["x", ".1", "=", "1.5e-3", ".*", '"// no"', "%/%", "y", "'", ";"]
    assert [each.text for each in tokens(text)] == found
    assert comments(text) == ["/* ; */", "// ;"]
    assert tokens("a b") == [Token("a", 0, 1), Token("b", 2, 3)]


@pytest.mark.parametrize("method", get_args(Variant))
def test_no_pedantic_warnings_are_new(method: Variant, tmp_path: Path) -> None:
    path = tmp_path / "written.stan"
    path.write_text(written(SCHOOLS, method))
    command = [str(require_stanc()), "--warn-pedantic", str(path)]
    result = subprocess.run(
        [*command, f"--o={tmp_path / 'out.hpp'}"], capture_output=True, text=True, check=True
    )
    assert not re.search(r"empty|unused|unreachable", result.stderr, re.IGNORECASE), result.stderr


def test_all_forms_of_a_program_are_read_from_it_once() -> None:
    several = temper_each(SCHOOLS, ["target", "joint_tempering"])
    assert [each.text for each in several] == [
        written(SCHOOLS, method) for method in ("target", "joint_tempering")
    ]


def test_words_that_are_not_english(tmp_path: Path) -> None:
    """Comments and strings in UTF-8, lines that end as on Windows, and empty lines."""
    path = tmp_path / "program.stan"
    model = """model {
  // a priori, für μ
  if (n > 3) reject("zu groß: ", n, "// é"); // größer
  mu ~ normal(0, 1);


  y ~ normal(mu, 1); // → y
}
"""
    text = f"// µ\ndata {{ int n; vector[n] y; }}\nparameters {{ real mu; }}\n{model}"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    wanted = model.replace("mu ~ normal(0,", "target += normal_lpdf(mu | 0,")
    wanted = wanted.replace("y ~ normal(mu,", "target += normal_lpdf(y | mu,")
    found = temper(path, method="target").text
    assert found[found.index("model") :] == wanted
    assert found.splitlines()[4] == "// µ"


def test_comments_go_with_statements_that_a_prior_does_not_need(tmp_path: Path) -> None:
    path = tmp_path / "program.stan"
    path.write_text(
        """data { int n; vector[n] y; }
parameters { real mu; }
model { // all
  // of mu

  /* of y,

     observed */ // too
  // more
  y ~ normal(mu, 1); // gone
  // and of
  // mu
  mu ~ normal(0, 1); // stays
  y ~ normal(mu, 2); mu ~ normal(0, 2); // both
  if (n > 3) y ~ normal(mu, 3); else mu ~ normal(0, 3);
  if (n > 4) if (n > 5) mu ~ normal(0, 4); else y ~ normal(mu, 4);
  // end
}
"""
    )
    text = temper(path, method="prior").text
    assert (
        text[text.index("model") :]
        == """model { // all
  // of mu

  // and of
  // mu
  target += normal_lpdf(mu | 0, 1); // stays
  target += normal_lpdf(mu | 0, 2); // both
  if (n > 3) { } else target += normal_lpdf(mu | 0, 3);
  if (n > 4) {
    if (n > 5) target += normal_lpdf(mu | 0, 4);
  }
  // end
}
"""
    )


def test_functions_that_are_declared_before_they_are_defined(tmp_path: Path) -> None:
    path = tmp_path / "program.stan"
    path.write_text(
        """functions {
  real add_lp(real x); // first
  real add_lp(real x) { x ~ normal(0, 1); return x; } // then
  void more_lp(real x) {
    for (i in 1 : 2) // twice
      x ~ normal(add_lp(x), 1);
  }
}
data { real y; }
parameters { real mu; }
model {
  mu ~ normal(add_lp(mu), 1); // called
  for (i in 1 : 1 + 0 * to_int(0)) y ~ normal(mu, 1); // in a line
  more_lp(mu);
}
"""
    )
    text = temper(path, method="target").text
    assert (
        text[text.index("functions") :]
        == """functions {
  real add_log_density(real x);
  real add_value(real x); // first
  real add_log_density(real x) {
    real lp_2 = 0;
    lp_2 += normal_lpdf(x | 0, 1); return lp_2;
  }
  real add_value(real x) {
    return x;
  } // then
  real more_log_density(real x) {
    real lp_3 = 0;
    for (i in 1 : 2) // twice
      {
        lp_3 += add_log_density(x);
        lp_3 += normal_lpdf(x | add_value(x), 1);
      }
    return lp_3;
  }
}
data {
  real y;
}
parameters {
  real mu;
}
model {
  target += add_log_density(mu);
  target += normal_lpdf(mu | add_value(mu), 1); // called
  for (i in 1 : 1 + 0 * to_int(0)) target += normal_lpdf(y | mu, 1); // in a line
  target += more_log_density(mu);
}
"""
    )


def test_a_program_of_ones_own_is_kept_as_it_is() -> None:
    assert self_contained(SCHOOLS) == SCHOOLS.read_text(encoding="utf-8")
