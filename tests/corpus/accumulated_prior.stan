data {
  int<lower=1> N;
  vector[N] y;
  vector<lower=0>[2] scale;
}
parameters {
  vector[2] mu;
  real<lower=0> sigma;
}
model {
  real log_prior = 0;
  for (j in 1 : 2) {
    log_prior += normal_lpdf(mu[j] | 0, scale[j]);
  }
  log_prior += exponential_lpdf(sigma | 1);
  target += log_prior; // temper: no
  target += normal_lpdf(y | mu[1] + mu[2], sigma); // likelihood
}
