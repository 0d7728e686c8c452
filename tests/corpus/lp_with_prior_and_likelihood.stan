functions {
  void everything_lp(vector y, real mu) {
    mu ~ normal(0, 3);
    y ~ normal(mu, 1);
  }
}
data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  everything_lp(y, mu); // likelihood = target += normal_lpdf(y | mu, 1); // prior = target += normal_lpdf(mu | 0, 3);
}
