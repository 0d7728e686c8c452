data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  vector[N] y;
  vector[K] m0;
  matrix[K, K] V0;
  real<lower=0> a0;
  real<lower=0> b0;
}
parameters {
  vector[K] beta;
  real<lower=0> sigma2;
}
model {
  sigma2 ~ inv_gamma(a0, b0);
  beta ~ multi_normal(m0, sigma2 * V0);
  y ~ normal(X * beta, sqrt(sigma2)); // likelihood
}
