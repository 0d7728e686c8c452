data {
  int<lower=1> B;
  int<lower=1> G;
  vector[B] log_zeta;
  vector[B] base_mean;
  int<lower=0, upper=1> ladder;
}
parameters {
  real beta;
  vector[G] g_knot;
  real<lower=0> inv_temp;
  real log_lik;
  real delta;
}
transformed parameters {
  real log_weight = beta + delta;
}
model {
  int i = ladder + 1;
  beta ~ normal(0, 1);
  g_knot ~ normal(0, i);
  inv_temp ~ exponential(1);
  log_lik ~ normal(0, 1);
  delta ~ normal(0, 1);
  log_zeta ~ normal(log_weight + base_mean * log_lik + g_knot[i], inv_temp); // likelihood
}
