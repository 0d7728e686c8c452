data {
  int<lower=1> N;
  complex_vector[N] z;
}
parameters {
  complex amplitude;
  real<lower=0> sigma;
}
model {
  complex_vector[N] residual = z - amplitude;
  get_real(amplitude) ~ normal(0, 2);
  get_imag(amplitude) ~ normal(0, 2);
  sigma ~ exponential(1);
  get_real(residual) ~ normal(0, sigma); // likelihood
  get_imag(residual) ~ normal(0, sigma); // likelihood
}
