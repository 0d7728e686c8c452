// Pseudo-extended horseshoe regression as in Nemeth et al.'s (2019) experiment:
// pseudo-samples y_i = (beta0_i, z_i) under one set of scales
// s = (lambda, tau, c^2).  With L the likelihood and p the prior,
//   p(s) (1/N) sum_i [pi(beta_i) L(y_i, s)^(1 - beta_i) / g(beta_i)]
//        prod_j p(y_j) L(y_j, s)^beta_j g(beta_j).
//
// THIS FORM IS NOT EXACT; pseudo_extended.stan is.  Given s it is the
// pseudo-extended density of p(y | s), so weighted draws of y_i given s are
// right.  But the instrumental densities of the pseudo-samples that are not
// chosen integrate to constants that depend on s,
//   C_beta(s) = integral of p(y) L(y, s)^beta dy,
// so that the scales of weighted draws have not p(s) C_1(s), their posterior
// up to a constant, but
//   p(s) C_1(s) (1/N) sum_i prod_{j != i} C_{beta_j}(s)
// with fixed inverse temperatures, and with sampled ones the same with each
// C_{beta_j}(s) averaged over g: the data count more than once.  It is exact
// for N = 1 and, as C_0 = 1, when all inverse temperatures are fixed at 0;
// all fixed at 1, the data count N times for the scales.  Its log weights and
// delta are those of y_i given s, and give no evidence.
functions {
  #include tempering.stanfunctions
  #include horseshoe/density.stanfunctions
}
data {
  int<lower=1> n; // number of observations
  int<lower=1> d; // number of predictors
  matrix[n, d] X; // predictors, one observation a row
  array[n] int<lower=0, upper=1> y; // classes
  real<lower=0> scale_global; // scale tau_0 of the global scale
  real<lower=0> scale_icept; // standard deviation of the intercept
  real<lower=0> slab_scale; // scale of the slab
  real<lower=0> slab_df; // degrees of freedom of the slab
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/pseudo_samples.standata
}
transformed data {
  int uniform_g = is_uniform(log_g, g_shape);
  int uniform_pi = is_uniform(log_pi, pi_shape);
  if (B) {
    reject("shared scales take no Gaussian base, only the prior; found B = ",
           B);
  }
}
parameters {
  vector[N] beta0; // intercepts
  matrix[d, N] z; // standardised coefficients
  vector<lower=0>[d] lambda; // local scales
  real<lower=0> tau; // global scale
  real<lower=0> c2; // squared slab width
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] beta = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_base = horseshoe_coefficients_log_prior(beta0, z,
                         scale_icept);
  vector[N] log_likelihood = logistic_log_likelihood(y, X, beta0,
                               diag_pre_multiply(
                                 horseshoe_width(lambda, tau, c2), z));
  vector[N] log_gamma = log_base + log_likelihood;
  target += horseshoe_scales_log_prior(lambda, tau, c2, scale_global,
              slab_scale, slab_df);
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
  vector[N] delta; // log zeta - log likelihood
  vector[N] log_weight;
  {
    vector[N] log_likelihood = logistic_log_likelihood(y, X, beta0,
                                 diag_pre_multiply(
                                   horseshoe_width(lambda, tau, c2), z));
    delta = log_zeta - log_likelihood;
    log_weight = pseudo_extended_log_weight(
                   log_likelihood
                   + log_inv_temp_density(inv_temp, pi_knot, log_pi,
                       pi_shape),
                   geometric_path(log_likelihood, zeros_vector(N), log_zeta,
                                  inv_temp)
                   + log_inv_temp_density(inv_temp, g_knot, log_g, g_shape));
  }
}

