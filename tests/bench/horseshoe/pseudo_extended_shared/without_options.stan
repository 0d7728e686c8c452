// No options, and a loop over pseudo-samples.
functions {
  #include horseshoe/density.stanfunctions
}
data {
  #include horseshoe/data.stanblock
  int<lower=1> N; // number of pseudo-samples
}
parameters {
  vector[N] beta0; // intercepts
  matrix[d, N] z; // standardised coefficients
  vector<lower=0>[d] lambda; // local scales
  real<lower=0> tau; // global scale
  real<lower=0> c2; // squared slab width
  vector<lower=0, upper=1>[N] inv_temp;
}
model {
  vector[d] width = horseshoe_width(lambda, tau, c2);
  vector[N] log_prior;
  vector[N] log_likelihood;
  for (i in 1 : N) {
    log_prior[i] = normal_lpdf(beta0[i] | 0, scale_icept)
                   + std_normal_lpdf(z[ : , i]);
    log_likelihood[i] = bernoulli_logit_glm_lpmf(y | X, beta0[i],
                          width .* z[ : , i]);
  }
  target += horseshoe_scales_log_prior(lambda, tau, c2, scale_global,
              slab_scale, slab_df);
  target += log_sum_exp((1 - inv_temp) .* log_likelihood) - log(N)
            + sum(log_prior + inv_temp .* log_likelihood);
}

