// A product of Student t distributions without their constants.
// docs/api/models.md explains its data.
data {
  int<lower=1> D; // dimension
  real<lower=0> nu; // degrees of freedom
}
parameters {
  vector[D] x;
}
model {
  target += -0.5 * (nu + 1) * sum(log1p(square(x) / nu));
}

