functions {
  real zip_lpmf(int y, real p, real lambda) {
    if (y == 0) {
      return log_sum_exp(bernoulli_lpmf(1 | p), bernoulli_lpmf(0 | p) + poisson_lpmf(0 | lambda));
    }
    return bernoulli_lpmf(0 | p) + poisson_lupmf(y | lambda);
  }
}
data {
  int<lower=0> N;
  array[N] int<lower=0> y;
}
parameters {
  real<lower=0, upper=1> p;
  real<lower=0> lambda;
}
model {
  p ~ beta(2, 2);
  lambda ~ exponential(0.2);
  for (n in 1 : N) {
    y[n] ~ zip(p, lambda); // likelihood
  }
}
