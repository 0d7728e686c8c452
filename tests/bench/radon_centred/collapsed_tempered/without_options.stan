// No options: g is uniform, so that the integral is (1 - exp(-delta)) / delta.
functions {
  #include tempering.stanfunctions
  #include radon/density.stanfunctions
}
data {
  int<lower=1> H; // number of homes
  int<lower=1> J; // number of counties
  array[H] int<lower=1, upper=J> county; // county of each home
  vector[H] first_floor; // measured on the first floor (1), in the basement (0)
  vector[H] log_uranium; // log of the soil's uranium, by county
  vector[H] log_radon; // log of radon in pCi/l
  #include blocks/base.standata
}
transformed data {
  matrix[H, 4] home = append_col(append_col(first_floor, log_uranium),
                                 append_col(log_radon, ones_vector(H)));
  matrix[4, 4] gram = crossprod(home);
  matrix[J, 4] totals = radon_county_totals(home, county, J);
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
  vector[2] beta; // coefficients of floor, uranium
}
model {
  vector[2] m = (beta - mu_b) / sigma_b;
  real log_gamma = radon_log_likelihood(mu_a, mu_b, sigma_a, sigma_b, eps, n,
                     m, gram, totals)
                   + radon_log_prior(mu_a, mu_b, sigma_a, sigma_b, eps, n, m)
                   - 2 * log(sigma_b);
  real log_base = log_norm
                  - 0.5
                    * dot_self(
                               whiten
                               * radon_unconstrained(mu_a, mu_b, sigma_a,
                                   sigma_b, eps, n, beta)
                               - shift)
                  - log(sigma_a * sigma_b * eps);
  real delta = log_base + log_zeta - log_gamma;
  target += log_base
            + (delta > 0 ? log1m_exp(-delta) - log(delta)
               : log1m_exp(delta) - delta - log(-delta));
}

