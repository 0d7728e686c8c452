data {
  int<lower=1> n;
  vector[n] y;
}
parameters {
  vector[n] mu_err;
  real mu1;
  real<lower=0> sigma_level;
  real<lower=0> sigma_irreg;
}
transformed parameters {
  vector[n] mu;
  mu[1] = mu1;
  for (t in 2 : n) {
    mu[t] = mu[t - 1] + sigma_level * mu_err[t - 1];
  }
}
model {
  mu_err ~ std_normal();
  mu1 ~ normal(0, 10);
  sigma_level ~ normal(0, 1);
  sigma_irreg ~ normal(0, 1);
  for (t in 1 : n) {
    y[t] ~ normal(mu[t], sigma_irreg); // likelihood
  }
}
