data {
  int<lower=1> n_obs;
  int<lower=1> n_county;
  array[n_obs] int<lower=1, upper=n_county> county;
  vector[n_obs] floor_measure;
  vector[n_obs] log_radon;
}
parameters {
  vector[n_county] alpha;
  real beta;
  real mu_alpha;
  real<lower=0> sigma_alpha;
  real<lower=0> sigma_y;
}
model {
  vector[n_obs] mu;
  sigma_alpha ~ normal(0, 1);
  sigma_y ~ normal(0, 1);
  mu_alpha ~ normal(0, 10);
  beta ~ normal(0, 10);
  alpha ~ normal(mu_alpha, sigma_alpha);
  for (n in 1 : n_obs) {
    mu[n] = alpha[county[n]] + floor_measure[n] * beta;
    target += normal_lpdf(log_radon[n] | mu[n], sigma_y); // likelihood
  }
}
