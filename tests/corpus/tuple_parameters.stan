data {
  int<lower=1> N;
  tuple(vector[N], array[N] int) obs;
}
parameters {
  tuple(real, real<lower=0>) location_scale;
  tuple(vector<lower=0>[2], simplex[3]) rest;
}
model {
  location_scale.1 ~ normal(0, 3);
  location_scale.2 ~ exponential(1);
  rest.1 ~ gamma(2, 1);
  rest.2 ~ dirichlet([2, 2, 2]');
  obs.1 ~ normal(location_scale.1, location_scale.2); // likelihood
  for (n in 1 : N) {
    obs.2[n] ~ poisson(rest.1[1] + rest.2[1]); // likelihood
  }
}
