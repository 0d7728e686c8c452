data {
  int<lower=0> N_obs;
  int<lower=0> N_cens;
  array[N_obs] real y_obs;
  real U;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, 5);
  sigma ~ exponential(0.5);
  y_obs ~ normal(mu, sigma); // likelihood
  target += N_cens * normal_lccdf(U | mu, sigma); // likelihood
}
