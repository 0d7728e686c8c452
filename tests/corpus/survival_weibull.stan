data {
  int<lower=0> N_obs;
  int<lower=0> N_cens;
  int<lower=0> M;
  vector<lower=0>[N_obs] t_obs;
  vector<lower=0>[N_cens] t_cens;
  matrix[N_obs, M] X_obs;
  matrix[N_cens, M] X_cens;
}
transformed data {
  real<lower=0> tau_al = 10.0;
  real<lower=0> tau_mu = 10.0;
}
parameters {
  real alpha_raw;
  vector[M] beta;
  real mu;
}
transformed parameters {
  real alpha = exp(tau_al * alpha_raw / 20);
}
model {
  alpha_raw ~ normal(0.0, 1.0);
  beta ~ normal(0, 1);
  mu ~ normal(0.0, tau_mu);
  t_obs ~ weibull(alpha, exp(-(mu + X_obs * beta) / alpha)); // likelihood
  target += weibull_lccdf(t_cens | alpha, exp(-(mu + X_cens * beta) / alpha)); // likelihood
}
