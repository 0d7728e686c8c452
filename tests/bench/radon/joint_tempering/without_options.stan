// No options: the inverse temperature is sampled, and g is uniform.
functions {
  #include tempering.stanfunctions
  #include radon/density.stanfunctions
}
data {
  #include radon/data.stanblock
  #include path/base.stanblock
}
transformed data {
  #include radon/prepared.stanblock
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  real mu_a; // mean intercept
  real mu_b; // mean coefficient
  real<lower=0> sigma_a; // standard deviation of the intercepts
  real<lower=0> sigma_b; // standard deviation of the coefficients
  real<lower=0> eps; // standard deviation of a measurement
  vector[J] n; // standardised intercepts of counties
  vector[2] m; // standardised coefficients of floor, uranium
  real<lower=0, upper=1> inv_temp;
}
model {
  real log_gamma = radon_log_likelihood(mu_a, mu_b, sigma_a, sigma_b, eps, n,
                     m, gram, totals)
                   + radon_log_prior(mu_a, mu_b, sigma_a, sigma_b, eps, n, m);
  real log_base = log_norm
                  - 0.5
                    * dot_self(
                               whiten
                               * radon_unconstrained(mu_a, mu_b, sigma_a,
                                   sigma_b, eps, n, m)
                               - shift)
                  - log(sigma_a * sigma_b * eps);
  target += log_base + inv_temp * (log_gamma - log_zeta - log_base);
}

