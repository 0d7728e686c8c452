// Continuously tempered mixture of Gaussians (Graham and Storkey 2017,
// eq. 16): log p(x, beta) = log gamma_beta(x) + log g(beta) on the
// geometric path from the base, a Gaussian or uniform on the box.
functions {
  #include tempering.stanfunctions
  #include gaussian_mixture/density.stanfunctions
}
data {
  int<lower=1> D; // dimension
  int<lower=1> K; // number of mixture components
  simplex[K] weight; // mixture weights
  matrix[D, K] mu; // component means, one a column
  vector<lower=0>[K] sigma; // component standard deviations
  real lower_bound; // the box is [lower_bound, upper_bound]^D
  real<lower=lower_bound> upper_bound;
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/inv_temp.standata
}
transformed data {
  matrix[K, D + 2] coefficients = gaussian_mixture_coefficients(weight, mu,
                                    sigma);
  #include blocks/whitened_base.standata
  int uniform_g = is_uniform(log_g, ones_vector(2));
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
  vector<lower=0, upper=1>[sample_inv_temp] free_inv_temp;
}
model {
  real beta = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  real log_base = B
                  ? gaussian_base_lpdf(x | whitened_mean, whiten,
                      base_constant)
                  : -D * log(upper_bound - lower_bound);
  target += geometric_path(gaussian_mixture_lpdf(x | coefficients), log_base,
                           log_zeta, beta);
  if (!uniform_g) {
    target += sum(piecewise_linear([beta]', g_knot, log_g));
  }
}
generated quantities {
  real inv_temp = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  real delta = log_zeta - gaussian_mixture_lpdf(x | coefficients)
               + (B
                  ? gaussian_base_lpdf(x | whitened_mean, whiten,
                      base_constant)
                  : -D * log(upper_bound - lower_bound));
  vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot,
                           log_g, 0);
}

