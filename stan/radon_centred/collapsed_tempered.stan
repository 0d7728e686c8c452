// Continuously tempered radon regression in the parameters of this folder's
// target.stan, with the inverse temperature integrated out:
// log p(x) = log b(x) + log integral of g(beta) exp(-beta Delta(x)). On a
// ladder the integral is a sum over its rungs.
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
}
transformed data {
  matrix[H, 4] home = append_col(append_col(first_floor, log_uranium),
                                 append_col(log_radon, ones_vector(H)));
  matrix[4, 4] gram = crossprod(home);
  matrix[J, 4] totals = radon_county_totals(home, county, J);
  #include blocks/whitened_base.standata
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
  real log_prior = radon_log_prior(mu_a, mu_b, sigma_a, sigma_b, eps, n, m)
                   - 2 * log(sigma_b); // of beta, not of m
  real log_gamma = log_prior
                   + radon_log_likelihood(mu_a, mu_b, sigma_a, sigma_b, eps,
                       n, m, gram, totals);
  real log_base = B
                  ? gaussian_base_lpdf(
                      radon_unconstrained(mu_a, mu_b, sigma_a, sigma_b, eps,
                        n, beta) |
                      whitened_mean, whiten, base_constant)
                    - log(sigma_a * sigma_b * eps)
                  : log_prior;
  target += log_base
            + log_tempered_mass(log_base + log_zeta - log_gamma, g_knot,
                log_g, ladder);
}
generated quantities {
  real delta;
  real inv_temp;
  vector[2] log_weight;
  {
    vector[2] m = (beta - mu_b) / sigma_b;
    real log_prior = radon_log_prior(mu_a, mu_b, sigma_a, sigma_b, eps, n, m)
                     - 2 * log(sigma_b);
    real log_gamma = log_prior
                     + radon_log_likelihood(mu_a, mu_b, sigma_a, sigma_b,
                         eps, n, m, gram, totals);
    real log_base = B
                    ? gaussian_base_lpdf(
                        radon_unconstrained(mu_a, mu_b, sigma_a, sigma_b,
                          eps, n, beta) |
                        whitened_mean, whiten, base_constant)
                      - log(sigma_a * sigma_b * eps)
                    : log_prior;
    delta = log_base + log_zeta - log_gamma;
  }
  inv_temp = inv_temp_rng(delta, g_knot, log_g, ladder);
  log_weight = continuous_tempering_log_weight(delta, g_knot, log_g, ladder);
}

