data {
  int<lower=0> N;
  array[N] int<lower=0> y;
}
parameters {
  real<lower=0, upper=1> theta;
  real<lower=0> lambda;
}
model {
  lambda ~ gamma(2, 0.5);
  for (n in 1 : N) {
    if (y[n] == 0) {
      1 ~ bernoulli(theta); // likelihood
    } else {
      0 ~ bernoulli(theta); // likelihood
      y[n] ~ poisson(lambda) T[1, ]; // likelihood = target += poisson_lpmf(y[n] | lambda) - poisson_lccdf(0 | lambda);
    }
  }
}
