data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  real total = 0;
  mu ~ normal(0, 3);
  sigma ~ exponential(1);
  for (n in 1 : N) {
    total += normal_lpdf(y[n] | mu, sigma);
  }
  target += total; // likelihood
}
