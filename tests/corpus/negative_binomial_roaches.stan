data {
  int<lower=0> N;
  vector[N] exposure2;
  vector[N] roach1;
  vector[N] treatment;
  array[N] int y;
}
transformed data {
  vector[N] log_expo;
  vector[N] sqrt_roach;
  log_expo = log(exposure2);
  sqrt_roach = sqrt(roach1);
}
parameters {
  real beta_0;
  real beta_1;
  real beta_2;
  real<lower=0> reciprocal_phi;
}
transformed parameters {
  real phi = 1. / reciprocal_phi;
}
model {
  reciprocal_phi ~ cauchy(0., 5);
  beta_0 ~ normal(0, 5);
  beta_1 ~ normal(0, 5);
  beta_2 ~ normal(0, 5);
  y ~ neg_binomial_2_log(log_expo + beta_0 + beta_1 * sqrt_roach + beta_2 * treatment, phi); // likelihood
}
