// No options: g is uniform, so that the integral is (1 - exp(-delta)) / delta.
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
  vector<lower=0>[K] lambda; // precisions of the components
  vector[K - 1] logit_z; // weights: log z_k - log z_K
  real<lower=0> rate; // rate of the precisions' prior
}
model {
  real log_gamma = sum(
                       stamps_two_parts(thickness, stamps, mu, lambda,
                                        logit_z, rate, K));
  real log_base = log_norm
                  - 0.5
                    * dot_self(
                               whiten
                               * append_row(append_row(mu, log(lambda)),
                                            append_row(logit_z, log(rate)))
                               - shift)
                  - sum(log(lambda)) - log(rate);
  real delta = log_base + log_zeta - log_gamma;
  target += log_base
            + (delta > 0 ? log1m_exp(-delta) - log(delta)
               : log1m_exp(delta) - delta - log(-delta));
}

