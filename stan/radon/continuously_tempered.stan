// Continuously tempered radon regression (Graham and Storkey 2017, eq. 16):
// log p(x, beta) = log gamma_beta(x) + log g(beta).
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
  #include blocks/inv_temp.standata
}
transformed data {
  matrix[H, 4] home = append_col(append_col(first_floor, log_uranium),
                                 append_col(log_radon, ones_vector(H)));
  matrix[4, 4] gram = crossprod(home);
  matrix[J, 4] totals = radon_county_totals(home, county, J);
  #include blocks/whitened_base.standata
  int uniform_g = is_uniform(log_g, ones_vector(2));
}
parameters {
  real mu_a; // mean intercept
  real mu_b; // mean coefficient
  real<lower=0> sigma_a; // standard deviation of the intercepts
  real<lower=0> sigma_b; // standard deviation of the coefficients
  real<lower=0> eps; // standard deviation of a measurement
  vector[J] n; // standardised intercepts of counties
  vector[2] m; // standardised coefficients of floor, uranium
  vector<lower=0, upper=1>[sample_inv_temp] free_inv_temp;
}
model {
  real beta = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  real log_prior = radon_log_prior(mu_a, mu_b, sigma_a, sigma_b, eps, n, m);
  real log_gamma = log_prior
                   + radon_log_likelihood(mu_a, mu_b, sigma_a, sigma_b, eps,
                       n, m, gram, totals);
  real log_base = B
                  ? gaussian_base_lpdf(
                      radon_unconstrained(mu_a, mu_b, sigma_a, sigma_b, eps,
                        n, m) |
                      whitened_mean, whiten, base_constant)
                    - log(sigma_a * sigma_b * eps)
                  : log_prior;
  target += geometric_path(log_gamma, log_base, log_zeta, beta);
  if (!uniform_g) {
    target += sum(piecewise_linear([beta]', g_knot, log_g));
  }
}
generated quantities {
  real inv_temp = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  real delta;
  vector[2] log_weight;
  {
    real log_prior = radon_log_prior(mu_a, mu_b, sigma_a, sigma_b, eps, n, m);
    real log_gamma = log_prior
                     + radon_log_likelihood(mu_a, mu_b, sigma_a, sigma_b,
                         eps, n, m, gram, totals);
    real log_base = B
                    ? gaussian_base_lpdf(
                        radon_unconstrained(mu_a, mu_b, sigma_a, sigma_b,
                          eps, n, m) |
                        whitened_mean, whiten, base_constant)
                      - log(sigma_a * sigma_b * eps)
                    : log_prior;
    delta = log_base + log_zeta - log_gamma;
  }
  log_weight = continuous_tempering_log_weight(delta, g_knot, log_g, 0);
}

