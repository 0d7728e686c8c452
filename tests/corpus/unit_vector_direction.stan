data {
  int<lower=1> N;
  array[N] vector[3] d;
}
parameters {
  unit_vector[3] m;
  real<lower=0> kappa;
}
model {
  kappa ~ gamma(2, 0.5);
  for (n in 1 : N) {
    target += kappa * dot_product(m, d[n]) + log(kappa) - log(4 * pi()) - log(sinh(kappa)); // likelihood
  }
}
