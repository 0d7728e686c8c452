// Pseudo-extended radon regression (Nemeth et al. 2019, eq. 3) with each
// inverse temperature integrated out of its own instrumental density,
// q(x) = b(x) times the integral of g(beta) exp(-beta Delta(x)), so that
// NUTS moves in the pseudo-samples alone.
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
  #include blocks/ladder.standata
  int<lower=1> N; // number of pseudo-samples
}
transformed data {
  matrix[H, 4] home = append_col(append_col(first_floor, log_uranium),
                                 append_col(log_radon, ones_vector(H)));
  matrix[4, 4] gram = crossprod(home);
  matrix[J, 4] totals = radon_county_totals(home, county, J);
  #include blocks/whitened_base.standata
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
}
model {
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
  vector[N] log_q = log_base;
  for (i in 1 : N) {
    log_q[i] += log_tempered_mass(log_base[i] + log_zeta - log_gamma[i],
                  g_knot, log_g, ladder);
  }
  target += pseudo_extended_log_density(log_gamma, log_q);
}
generated quantities {
  vector[N] inv_temp; // drawn from its conditional under q
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
    vector[N] log_q = log_base;
    delta = log_base + log_zeta - log_gamma;
    for (i in 1 : N) {
      log_q[i] += log_tempered_mass(delta[i], g_knot, log_g, ladder);
      inv_temp[i] = inv_temp_rng(delta[i], g_knot, log_g, ladder);
    }
    log_weight = pseudo_extended_log_weight(log_gamma, log_q);
  }
}

