// Horseshoe regression, pseudo-extended, scales shared: NOT EXACT (below).
// docs/adding-a-model.md explains its data.
//
// Nemeth et al.'s (2019) experiment: pseudo-samples y_i = (beta0_i, z_i), all
// under scales s = (lambda, tau, c^2).  With L the likelihood and p the prior,
//   p(s) (1/N) sum_i [pi(beta_i) L(y_i, s)^(1 - beta_i) / g(beta_i)]
//        prod_j p(y_j) L(y_j, s)^beta_j g(beta_j).
// Given s it is the pseudo-extended density of p(y | s), so weighted draws of
// y_i given s are right.  But the instrumental densities of those that are
// not chosen integrate to constants that depend on s,
//   C_beta(s) = integral of p(y) L(y, s)^beta dy,
// so the scales of weighted draws do not have their posterior density
// p(s) C_1(s), up to a constant.  With fixed inverse temperatures they have
//   p(s) C_1(s) (1/N) sum_i prod_{j != i} C_{beta_j}(s),
// and with sampled ones the same with each C_{beta_j}(s) averaged over g: the
// data count more than once.  It is exact for N = 1 and, because C_0 = 1, if
// all inverse temperatures are fixed at 0.  If all are fixed at 1, the data
// count N times for the scales.  The log weights and delta are those of y_i
// given s, and give no evidence.
functions {
  #include tempering.stanfunctions
  #include horseshoe/density.stanfunctions
}
data {
  #include horseshoe/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  #include pseudo_extended/prepared.stanblock
  if (B) {
    reject("shared scales take no Gaussian base, only the prior; found B = ",
           B);
  }
}
parameters {
  // Pseudo-samples, one per entry or column, with one set of scales for all.
  vector[N] beta0; // intercepts
  matrix[d, N] z; // standardised coefficients
  vector<lower=0>[d] lambda; // local scales
  real<lower=0> tau; // global scale
  real<lower=0> c2; // squared slab width
  #include pseudo_extended/parameters.stanblock
}
transformed parameters {
  vector[N] log_base = horseshoe_coefficients_log_prior(beta0, z,
                         scale_icept);
  vector[N] log_gamma = log_base
                        + logistic_log_likelihood(y, X, beta0,
                            diag_pre_multiply(
                              horseshoe_width(lambda, tau, c2), z),
                            N);
}
model {
  target += horseshoe_scales_log_prior(lambda, tau, c2, scale_global,
              slab_scale, slab_df);
  #include pseudo_extended/model.stanblock
}
generated quantities {
  #include pseudo_extended/generated.stanblock
}

