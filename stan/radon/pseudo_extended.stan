// Pseudo-extended radon regression (Nemeth et al. 2019, eq. 8):
// q(x, beta) = gamma_beta(x) g(beta).
// Its own base is the prior, so that only the likelihood is tempered (the
// power posterior); a Gaussian base is one of the unconstrained parameters,
// in their order of declaration.
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
  #include blocks/g.standata
  #include blocks/pseudo_samples.standata
}
transformed data {
  matrix[H, 4] home = append_col(append_col(first_floor, log_uranium),
                                 append_col(log_radon, ones_vector(H)));
  matrix[4, 4] gram = crossprod(home);
  matrix[J, 4] totals = radon_county_totals(home, county, J);
  #include blocks/whitened_base.standata
  int uniform_g = is_uniform(log_g, g_shape);
  int uniform_pi = is_uniform(log_pi, pi_shape);
}
parameters {
  // Pseudo-samples, one an entry or a column.
  vector[N] mu_a; // mean intercept
  vector[N] mu_b; // mean coefficient
  vector<lower=0>[N] sigma_a; // standard deviation of the intercepts
  vector<lower=0>[N] sigma_b; // standard deviation of the coefficients
  vector<lower=0>[N] eps; // standard deviation of a measurement
  matrix[J, N] n; // standardised intercepts of counties
  matrix[2, N] m; // standardised coefficients of floor, uranium
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] beta = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_prior = radon_log_prior_each(mu_a, mu_b, sigma_a, sigma_b,
                          eps, n, m, N);
  vector[N] log_gamma = log_prior
                        + radon_log_likelihood_each(mu_a, mu_b, sigma_a,
                            sigma_b, eps, n, m, N, gram, totals);
  vector[N] log_base = B
                       ? gaussian_base_log_density(
                           radon_unconstrained_each(mu_a, mu_b, sigma_a,
                             sigma_b, eps, n, m, N),
                           N, whitened_mean, whiten, base_constant)
                         - log(sigma_a .* sigma_b .* eps)
                       : log_prior;
  vector[N] log_q = geometric_path(log_gamma, log_base, log_zeta, beta);
  if (!uniform_pi) {
    log_gamma += log_inv_temp_density(beta, pi_knot, log_pi, pi_shape);
  }
  if (!uniform_g) {
    log_q += log_inv_temp_density(beta, g_knot, log_g, g_shape);
  }
  target += pseudo_extended_log_density(log_gamma, log_q);
  if (g_correlation != 0) {
    target += stratified_log_density(
                (free_inv_temp - g_knot[1]) / (1 - g_knot[1]), g_correlation);
  }
}
generated quantities {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] delta; // log b + log zeta - log gamma
  vector[N] log_weight;
  {
    vector[N] log_prior = radon_log_prior_each(mu_a, mu_b, sigma_a, sigma_b,
                            eps, n, m, N);
    vector[N] log_gamma = log_prior
                          + radon_log_likelihood_each(mu_a, mu_b, sigma_a,
                              sigma_b, eps, n, m, N, gram, totals);
    vector[N] log_base = B
                         ? gaussian_base_log_density(
                             radon_unconstrained_each(mu_a, mu_b, sigma_a,
                               sigma_b, eps, n, m, N),
                             N, whitened_mean, whiten, base_constant)
                           - log(sigma_a .* sigma_b .* eps)
                         : log_prior;
    delta = log_base + log_zeta - log_gamma;
    log_weight = pseudo_extended_log_weight(
                   log_gamma
                   + log_inv_temp_density(inv_temp, pi_knot, log_pi,
                       pi_shape),
                   geometric_path(log_gamma, log_base, log_zeta, inv_temp)
                   + log_inv_temp_density(inv_temp, g_knot, log_g, g_shape));
  }
}

