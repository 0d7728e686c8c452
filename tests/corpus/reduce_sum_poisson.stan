functions {
  real partial_lpmf(array[] int y, int start, int end, vector eta) {
    return poisson_log_lupmf(y | eta[start : end]);
  }
}
data {
  int<lower=1> N;
  array[N] int<lower=0> y;
  vector[N] x;
}
parameters {
  real a;
  real b;
}
model {
  a ~ normal(0, 2);
  b ~ normal(0, 1);
  target += reduce_sum(partial_lupmf, y, 1, a + b * x); // likelihood
}
