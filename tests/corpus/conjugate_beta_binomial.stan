data {
  int<lower=0> n;
  int<lower=0, upper=n> y;
  real<lower=0> a;
  real<lower=0> b;
}
parameters {
  real<lower=0, upper=1> theta;
}
model {
  target += beta_lpdf(theta | a, b);
  y ~ binomial(n, theta); // likelihood
}
