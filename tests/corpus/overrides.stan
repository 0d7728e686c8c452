data {
  int<lower=1> N;
  vector[N] y;
  vector[2] centre;
}
parameters {
  vector[2] mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(centre, 1);
  target += -0.5 * dot_self(mu - centre); // temper: no
  sigma ~ gamma(2, 2);
  // Of the first y nothing is learned along the path.
  y[1] ~ normal(mu[1], sigma); // temper: no
  y[2 : N] ~ normal(mu[2], sigma); // likelihood
}
