data {
  int<lower=1> J;
  int<lower=1> N;
  array[N] int<lower=1, upper=J> g;
  vector[N] y;
}
parameters {
  real<offset=3, multiplier=2> mu;
  real<lower=0> tau;
  vector<offset=mu, multiplier=tau>[J] theta;
  vector<multiplier=0.5>[2] extra;
  real<lower=0> sigma;
}
model {
  mu ~ normal(3, 2);
  tau ~ normal(0, 1);
  theta ~ normal(mu, tau);
  extra ~ normal(0, 0.5);
  sigma ~ lognormal(-1, 0.5);
  y ~ normal(theta[g] + extra[1] * extra[2], sigma); // likelihood
}
