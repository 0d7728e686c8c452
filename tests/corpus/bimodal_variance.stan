// One measurement a laboratory: what they differ by is that of the laboratories, or
// that of the instrument.
data {
  int<lower=1> J;
  vector[J] y;
}
parameters {
  real mu;
  real<lower=0> tau;
  real<lower=0> sigma;
}
transformed parameters {
  real<lower=0> spread = sqrt(square(tau) + square(sigma));
}
model {
  mu ~ normal(0, 2);
  tau ~ lognormal(-2.5, 0.45);
  sigma ~ lognormal(-2.55, 0.45);
  y ~ normal(mu, spread); // likelihood
}
