// No options: g is uniform, so that the integral is (1 - exp(-delta)) / delta.
functions {
  #include horseshoe/density.stanfunctions
}
data {
  #include horseshoe/data.stanblock
}
parameters {
  real beta0; // intercept
  vector[d] z; // standardised coefficients
  vector<lower=0>[d] lambda; // local scales
  real<lower=0> tau; // global scale
  real<lower=0> c2; // squared slab width
}
model {
  real log_prior = horseshoe_log_prior(beta0, z, lambda, tau, c2,
                     scale_global, scale_icept, slab_scale, slab_df);
  real log_likelihood = bernoulli_logit_glm_lpmf(y | X, beta0,
                          z .* horseshoe_width(lambda, tau, c2));
  real delta = -log_likelihood;
  target += log_prior
            + (delta > 0 ? log1m_exp(-delta) - log(delta)
               : log1m_exp(delta) - delta - log(-delta));
}

