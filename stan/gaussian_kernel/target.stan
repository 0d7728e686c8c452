// A Gaussian without its constant.
// docs/api/models.md explains its data.
data {
  int<lower=1> D; // dimension
  real<lower=0> tau; // precision
}
parameters {
  vector[D] x;
}
model {
  target += -0.5 * tau * dot_self(x);
}

