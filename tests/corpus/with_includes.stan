functions {
#include includes/laplace_pair.stanfunctions
}
data {
#include includes/observations.stan
}
parameters {
  real mu;
  real<lower=0> b;
}
model {
  mu ~ normal(0, 3);
  b ~ exponential(1);
  y ~ laplace_pair(mu, b); // likelihood
}
