"""What is taken for the likelihood, what is refused, and what the command line says."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.errors import CompileError, DataError
from harness.temper import temper
from harness.temper.tree import parse

# Each statement of the model block, and whether it gives data its density.
STATEMENTS = {
    "y ~ normal(mu, s);": True,
    "y[county] ~ normal(theta[county], s);": True,
    "x ~ normal(mu, 1);": True,
    "1 ~ bernoulli(inv_logit(mu));": True,
    "theta[county] ~ normal(x, s);": False,
    "mu ~ normal(x, 1);": False,
    "theta ~ normal(y, s);": False,
    "theta - x ~ normal(0, 1);": False,
    "sum(theta) ~ normal(0, 0.001 * N);": False,
    "y - mu ~ normal(0, s);": True,
    "residual ~ normal(0, s);": True,
    "both ~ normal(mu, s);": True,
    "scaled ~ normal(0, 1);": False,
    "target += normal_lpdf(theta | mu, s);": False,
    "target += normal_lupdf(y | theta, s);": True,
    "target += normal_lccdf(y | mu, s);": True,
    "target += -normal_lccdf(0 | mu, s);": False,
    "target += student_t_lpdf(s | 3, 0, 2.5) - 1 * student_t_lccdf(0 | 3, 0, 2.5);": False,
    "target += -0.5 * dot_self(theta[county] - mu);": False,
    "target += -0.5 * dot_self(y - mu);": True,
    "target += -N * log(s);": True,
    "target += -2 * log(s);": False,
    "target += log_mix(0.3, normal_lpdf(y[1] | mu, 1), normal_lpdf(y[1] | s, 1));": True,
    "target += log_prior;": False,
    "for (n in 1 : N) if (count[n] > 0) target += log(s);": True,
    "for (n in 1 : N) if (count[n] > 0) theta[n] ~ normal(0, 1);": False,
    "for (each in y) target += normal_lpdf(each | mu, s);": True,
    "for (each in theta) each ~ normal(0, 1);": False,
    "if (x > 0) count ~ poisson(s);": True,
    "add_lp(theta);": False,
    "add_lp(y);": True,
}

PROGRAM = """
functions {{
  void add_lp(vector x) {{ x ~ normal(0, 1); }}
}}
data {{
  int N; vector[N] y; array[N] int county; array[N] int count; real x; int<lower=1> K;
}}
transformed data {{ vector[K] ones = rep_vector(1, K); }}
parameters {{ real mu; real<lower=0> s; vector[N] theta; }}
transformed parameters {{
  vector[N] residual = y - mu;
  vector[N] scaled = theta * x .* rep_vector(1, N);
  real log_prior = normal_lpdf(mu | 0, 1);
}}
model {{
  vector[N] both;
  both[1] = y[1];
  both[2 : ] = theta[2 : ];
  {statement}
  y ~ normal(mu, 1);
}}
"""


def program(folder: Path, text: str) -> Path:
    path = folder / "program.stan"
    path.write_text(text)
    return path


ASKED = {
    "mu ~ normal(0, 1); s ~ exponential(1); target += -2 * log(s);": "s has a density already",
    "mu ~ normal(0, 1); s ~ exponential(1); target += -0.5 * square(mu / s);": "mu, s has",
    "mu ~ normal(0, 1); target += -2 * log(s);": "",
    "log(s) ~ normal(0, 1); target += -log(s);": "",
    "s ~ exponential(1); target += -0.5 * square(mu);": "",
    "s ~ exponential(1); target += -normal_lccdf(0 | mu, 1);": "",
    "s ~ exponential(1); target += -normal_lccdf(0 | 0, 2);": "",
}
"""What is asked about a statement that no data reach, "" for nothing."""


@pytest.mark.parametrize("statements", ASKED)
def test_what_changes_a_prior_that_there_is_already_is_asked_about(
    statements: str, tmp_path: Path
) -> None:
    said = ASKED[statements]
    found = temper(program(tmp_path, PROGRAM.format(statement=statements)), method="prior")
    assert [said in each for each in found.questions] == ([True] if said else [])


@pytest.mark.parametrize("statement", STATEMENTS)
def test_classification(statement: str, tmp_path: Path, cmdstan_home: Path) -> None:
    path = program(tmp_path, PROGRAM.format(statement=statement))
    first, last = temper(path, method="joint_tempering").statements
    assert first.tempered == STATEMENTS[statement], first.why
    assert (first.line, last.line) == (19, 20)
    assert last.tempered


def test_a_comment_overrides(tmp_path: Path, cmdstan_home: Path) -> None:
    path = program(
        tmp_path,
        """data { vector[2] y; }
parameters { real mu; }
model {
  mu ~ normal(0, 1); // temper: yes
  for (n in 1 : 2) { // temper: no
    y[n] ~ normal(mu,
                  1);
    y[n] ~ normal(mu, 2); // temper: yes
  }
  /* a comment
     of two lines */ y ~ normal(mu, 3);
}
""",
    )
    found = temper(path, method="pseudo_extended").statements
    assert [(each.line, each.tempered) for each in found] == [
        (4, True),
        (6, False),
        (8, True),
        (11, True),
    ]
    assert found[0].why == "as a comment says"
    assert all(
        each.tempered for each in temper(path, method="joint_tempering", what="all").statements[2:]
    )


REFUSED = {
    "data { real y; } parameters { real x; } model { y ~ normal(target(), x); }": "line 1: target",
    "data { real y; } parameters { real x; }\nmodel { x ~ normal(0, 1); }": "nothing|no statement",
    "data { real y; } model { y ~ normal(0, 1); }": "no parameters",
    "data { real y; } parameters { real x; } model { y ~ normal(x, 1); // temper: so\n}": "'so'",
    """data { real y; } parameters { real a; }
transformed parameters {
  real<lower=a> b = a + 1;
}
model { y ~ normal(b, 1); }""": "line 3: the constraint",
    """functions { int g_lp(real x) { target += x; return 1; } }
data { real y; } parameters { real a; }
model {
  if (g_lp(a)) y ~ normal(a, 1);
}""": "line 4: a function that adds",
    """functions { real f_lp(real x) { target += x; return x; } }
data { real y; } parameters { real a; }
model {
  real b = a > 0 ? f_lp(a) : 0;
  y ~ normal(b, 1);
}""": "line 4: a function that adds",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text: str, tmp_path: Path, cmdstan_home: Path) -> None:
    path = program(tmp_path, text)
    with pytest.raises(DataError, match=REFUSED[text]) as raised:
        temper(path, method="pseudo_extended")
    assert str(path) in str(raised.value)
    assert len(str(raised.value).splitlines()) <= 2


def test_what_is_not_stan_is_refused_with_its_line(tmp_path: Path, cmdstan_home: Path) -> None:
    path = program(tmp_path, "parameters {\n  real x\n}\n")
    with pytest.raises(CompileError, match="line 3"):
        temper(path, method="joint_tempering")


def test_command_line(tmp_path: Path, cmdstan_home: Path) -> None:
    path = program(
        tmp_path, "data { real y; }\nparameters { real m; }\nmodel {\n  y ~ normal(m, 1);\n}\n"
    )
    run = CliRunner().invoke(main, ["temper", str(path), "--method", "joint_tempering"])
    assert run.exit_code == 0, run.output
    assert "log_lik += normal_lpdf(y | m, 1);" in run.stdout
    assert run.stdout.startswith("// Joint tempering of program.stan")
    said = run.stderr.splitlines()
    assert said[0].split() == [
        *("4", "tempered", "y", "~", "normal(m,", "1);"),
        *("(a", "density", "of", "data", "y)"),
    ]
    assert said[1].startswith("m: no statement")

    out = tmp_path / "out.stan"
    again = CliRunner().invoke(
        main, ["temper", str(path), "--method", "joint_tempering", "-o", str(out)]
    )
    assert again.exit_code == 0
    assert out.read_text() == run.stdout
    missing = CliRunner().invoke(main, ["temper", str(tmp_path / "none.stan")])
    assert missing.exit_code == 1
    assert "there is no Stan program" in missing.stderr


@pytest.mark.parametrize(
    ("mean", "said_of_it"),
    [
        (
            1,
            "the base is not known to be normalised: line 5, `s ~ normal(1, 1);`: normal need not "
            "integrate to 1 over the support of s",
        ),
        (
            0,
            "the constraint cuts the density of each element of s in half, so the base integrates "
            "to 1/2 for each of them; log Z is for the base divided by that",
        ),
    ],
)
def test_the_prior_by_the_command_line(
    mean: int, said_of_it: str, tmp_path: Path, cmdstan_home: Path
) -> None:
    text = f"""data {{ int N; array[N] int w; }}
parameters {{ simplex[3] p; real<lower=0> s; }}
model {{
  p ~ dirichlet([1, 1, 1]');
  s ~ normal({mean}, 1);
  target += s * sum(log(p[w]));
}}
"""
    path = program(tmp_path, text)
    run = CliRunner().invoke(main, ["temper", str(path), "--method", "prior"])
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith("// Prior of program.stan")
    assert "dirichlet_lpdf(p |" in run.stdout
    assert "p[w]" not in run.stdout
    said = run.stderr.splitlines()
    assert said[3] == said_of_it
    assert len(said) == 4


def test_the_digest_changes_with_an_include(tmp_path: Path, cmdstan_home: Path) -> None:
    path = program(
        tmp_path,
        "data { real y; }\nparameters { real m; }\nmodel {\n  #include part.stan\n}\n",
    )
    part = tmp_path / "part.stan"
    part.write_text("y ~ normal(m, 1);\n")
    one = temper(path, method="joint_tempering")
    part.write_text("y ~ normal(m, 2);\n")
    two = temper(path, method="joint_tempering")
    assert one.digest != two.digest
    assert two.digest in two.text
    assert two.statements[0].file.endswith("part.stan")
    assert two.statements[0].line == 1


def test_trees_are_read_with_their_strings() -> None:
    assert parse(r'(a (b "x \"y\" (\\z)\n\065") ())') == ("a", ("b", 'x "y" (\\z)\nA'), ())


def test_a_jacobian_of_stans_own_cannot_be_tempered(tmp_path: Path, cmdstan_home: Path) -> None:
    text = """data { real y; } parameters { real a; }
transformed parameters {
  real b = lower_bound_jacobian(a, 0);
}
model { b ~ normal(0, 1); y ~ normal(b, 1); }"""
    path = program(tmp_path, text)
    assert temper(path, method="joint_tempering").uncovered == ()
    with pytest.raises(DataError, match="line 3: a function of Stan's changes variables"):
        temper(path, method="joint_tempering", what="all")
