data {
  int<lower=1> N;
  array[N] int<lower=0> k;
  real<lower=0> shape;
  real<lower=0> rate;
}
parameters {
  real<lower=0> lambda;
}
model {
  for (n in 1 : N) {
    target += poisson_lupmf(k[n] | lambda); // likelihood
  }
  lambda ~ gamma(shape, rate);
}
