data {
  int<lower=0> K;
  int<lower=K> T;
  vector[T] y;
}
parameters {
  real alpha;
  array[K] real beta;
  real<lower=0> sigma;
}
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 1);
  sigma ~ gamma(2, 2);
  for (t in (K + 1) : T) {
    real mu;
    mu = alpha;
    for (k in 1 : K) {
      mu += beta[k] * y[t - k];
    }
    y[t] ~ normal(mu, sigma); // likelihood
  }
}
