// No options: the inverse temperature is sampled, and g is uniform.
functions {
  #include tempering.stanfunctions
  #include log_gaussian_cox/field.stanfunctions
}
data {
  #include log_gaussian_cox/data.stanblock
  #include path/base.stanblock
}
transformed data {
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  real<lower=0> sigma2; // variance of the log intensity
  real<lower=0> range; // range of its correlations
  vector[n * n] x; // log intensity
  real<lower=0, upper=1> inv_temp;
}
model {
  real log_gamma = sum(
                       log_gaussian_cox_centred_parts(cell, points,
                         unit_square, n, field_mean, sigma2, range, x));
  real log_base = log_norm
                  - 0.5
                    * dot_self(
                               whiten
                               * append_row([log(sigma2), log(range)]', x)
                               - shift)
                  - log(sigma2 * range);
  target += log_base + inv_temp * (log_gamma - log_zeta - log_base);
}

