// A loop over observations calling bernoulli_logit_lpmf.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
  #include horseshoe/density.stanfunctions
}
data {
  #include horseshoe/data.stanblock
  #include pseudo_extended/data.stanblock
}
parameters {
  vector[N] beta0; // intercepts
  matrix[d, N] z; // standardised coefficients
  matrix<lower=0>[d, N] lambda; // local scales
  vector<lower=0>[N] tau; // global scales
  vector<lower=0>[N] c2; // squared slab widths
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_prior = horseshoe_log_prior(beta0, z, lambda, tau, c2,
                          scale_global, scale_icept, slab_scale, slab_df);
  vector[N] log_likelihood = zeros_vector(N);
  for (i in 1 : N) {
    vector[d] beta = z[ : , i]
                     .* horseshoe_width(lambda[ : , i], tau[i], c2[i]);
    for (k in 1 : n) {
      log_likelihood[i] += bernoulli_logit_lpmf(y[k] |
                             beta0[i] + X[k] * beta);
    }
  }
  target += pseudo_extended_log_density(log_prior + log_likelihood,
              log_prior + inv_temp .* log_likelihood);
}

