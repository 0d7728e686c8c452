data {
  int<lower=0> N;
  int<lower=0> K;
  array[N] int<lower=0> y;
  matrix[N, K] X;
  vector<lower=0>[N] exposure;
}
transformed data {
  vector[N] log_exposure = log(exposure);
}
parameters {
  real b0;
  vector[K] b;
}
model {
  target += normal_lupdf(b0 | 0, 5);
  target += normal_lupdf(b | 0, 1);
  target += poisson_log_lupmf(y | b0 + X * b + log_exposure); // likelihood
}
