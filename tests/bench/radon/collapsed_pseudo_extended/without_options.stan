// No options: g is uniform, so that each integral is (1 - exp(-delta)) / delta.
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
  int<lower=1> N; // number of pseudo-samples
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
  vector[N] mu_a; // mean intercept
  vector[N] mu_b; // mean coefficient
  vector<lower=0>[N] sigma_a; // standard deviation of the intercepts
  vector<lower=0>[N] sigma_b; // standard deviation of the coefficients
  vector<lower=0>[N] eps; // standard deviation of a measurement
  matrix[J, N] n; // standardised intercepts of counties
  matrix[2, N] m; // standardised coefficients of floor, uranium
}
model {
  vector[N] log_gamma;
  vector[N] log_q;
  for (i in 1 : N) {
    log_gamma[i] = radon_log_likelihood(mu_a[i], mu_b[i], sigma_a[i],
                     sigma_b[i], eps[i], n[ : , i], m[ : , i], gram, totals)
                   + radon_log_prior(mu_a[i], mu_b[i], sigma_a[i],
                                     sigma_b[i], eps[i], n[ : , i],
                                     m[ : , i]);
    real log_base = log_norm
                    - 0.5
                      * dot_self(
                                 whiten
                                 * radon_unconstrained(mu_a[i], mu_b[i],
                                     sigma_a[i], sigma_b[i], eps[i],
                                     n[ : , i], m[ : , i])
                                 - shift)
                    - log(sigma_a[i] * sigma_b[i] * eps[i]);
    real delta = log_base + log_zeta - log_gamma[i];
    log_q[i] = log_base
               + (delta > 0 ? log1m_exp(-delta) - log(delta)
                  : log1m_exp(delta) - delta - log(-delta));
  }
  target += log_sum_exp(log_gamma - log_q) - log(N) + sum(log_q);
}

