data {
  int<lower=0> N;
  int<lower=1> D;
  array[N] int<lower=0, upper=1> y;
  array[N] row_vector[D] x;
}
parameters {
  vector[D] beta;
}
model {
  beta ~ normal(0, 1);
  for (n in 1 : N) {
    target += bernoulli_lupmf(y[n] | Phi(x[n] * beta)); // likelihood
  }
}
