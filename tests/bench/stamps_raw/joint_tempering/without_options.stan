// No options: the inverse temperature is sampled, and g is uniform.
functions {
  #include tempering.stanfunctions
  #include stamps/mixture.stanfunctions
}
data {
  #include stamps/data.stanblock
  #include path/base.stanblock
}
transformed data {
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  vector[K] mu; // means of the components
  vector[K] lambda; // precisions of the components, positive
  vector[K - 1] z; // weights of all components but the last, positive
  real rate; // rate of the precisions' prior, positive
  real<lower=0, upper=1> inv_temp;
}
model {
  real log_gamma = stamps_whole(thickness, stamps, mu, lambda, z, rate, K);
  real log_base = log_norm
                  - 0.5
                    * dot_self(
                               whiten
                               * append_row(append_row(mu, lambda),
                                            append_row(z, rate))
                               - shift);
  target += log_base + inv_temp * (log_gamma - log_zeta - log_base);
}

