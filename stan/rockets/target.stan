// Failures of space launches: a beta-binomial model with one prior for all.
// docs/hard/rockets.md explains its data.
//
// The failure probabilities of the types are integrated out.
data {
  int<lower=1> N; // number of types of launch vehicles
  array[N] int<lower=1> launches;
  array[N] int<lower=0> failures;
}
parameters {
  vector[2] p; // shapes of the beta distribution, before softplus
}
transformed parameters {
  vector<lower=0>[2] shape = log1p_exp(p);
}
model {
  p ~ normal(0, 10);
  failures ~ beta_binomial(launches, shape[1], shape[2]);
}

