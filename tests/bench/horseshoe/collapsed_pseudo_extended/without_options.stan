// No options: g is uniform, so that each integral is (1 - exp(-delta)) / delta.
functions {
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
  int<lower=1> N; // number of pseudo-samples
}
parameters {
  vector[N] beta0; // intercepts
  matrix[d, N] z; // standardised coefficients
  matrix<lower=0>[d, N] lambda; // local scales
  vector<lower=0>[N] tau; // global scales
  vector<lower=0>[N] c2; // squared slab widths
}
model {
  vector[N] log_gamma;
  vector[N] log_q;
  for (i in 1 : N) {
    real log_prior = horseshoe_log_prior(beta0[i], z[ : , i], lambda[ : , i],
                       tau[i], c2[i], scale_global, scale_icept, slab_scale,
                       slab_df);
    real log_likelihood = bernoulli_logit_glm_lpmf(y | X, beta0[i],
                            z[ : , i]
                            .* horseshoe_width(lambda[ : , i], tau[i], c2[i]));
    log_gamma[i] = log_prior + log_likelihood;
    log_q[i] = log_prior
               + (log_likelihood < 0
                  ? log1m_exp(log_likelihood) - log(-log_likelihood)
                  : log1m_exp(-log_likelihood) + log_likelihood
                    - log(log_likelihood));
  }
  target += log_sum_exp(log_gamma - log_q) - log(N) + sum(log_q);
}

