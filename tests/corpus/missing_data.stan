data {
  int<lower=0> N_obs;
  int<lower=0> N_mis;
  array[N_obs] real y_obs;
}
parameters {
  real mu;
  real<lower=0> sigma;
  array[N_mis] real y_mis;
}
model {
  mu ~ normal(0, 2);
  sigma ~ lognormal(0, 1);
  y_obs ~ normal(mu, sigma); // likelihood
  y_mis ~ normal(mu, sigma);
}
