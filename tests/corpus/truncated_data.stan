data {
  int<lower=1> N;
  real U;
  array[N] real<upper=U> y;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, 5);
  sigma ~ gamma(2, 1);
  for (n in 1 : N) {
    y[n] ~ normal(mu, sigma) T[ , U]; // likelihood = target += normal_lpdf(y[n] | mu, sigma) - normal_lcdf(U | mu, sigma);
  }
}
