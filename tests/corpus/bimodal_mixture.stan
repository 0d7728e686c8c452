// Two groups, neither of which is named: their means can be exchanged.
data {
  int<lower=1> N;
  vector[N] y;
  real<lower=0, upper=1> share;
}
parameters {
  vector[2] mu;
}
model {
  mu ~ normal(0, 4);
  for (n in 1 : N) {
    target += log_mix(share, normal_lpdf(y[n] | mu[1], 1), normal_lpdf(y[n] | mu[2], 1)); // likelihood
  }
}
