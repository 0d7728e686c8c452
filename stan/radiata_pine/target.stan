// Strength of boards of radiata pine, explained by their density.
// docs/hard/radiata_pine.md explains its data.
data {
  int<lower=1> N; // number of boards
  vector[N] y; // strength
  vector[N] x; // density, or density adjusted for resin content
}
transformed data {
  vector[N] centred = x - mean(x);
  vector[2] prior_mean = [3000, 185]'; // of alpha and beta
  real prior_rate = 2 * 300 ^ 2; // of tau
}
parameters {
  real alpha; // mean strength
  real beta; // strength for each unit of density
  real<lower=0> tau; // precision of a board's strength
}
model {
  tau ~ gamma(3, prior_rate);
  alpha ~ normal(prior_mean[1], inv_sqrt(0.06 * tau));
  beta ~ normal(prior_mean[2], inv_sqrt(6 * tau));
  y ~ normal(alpha + beta * centred, inv_sqrt(tau));
}

