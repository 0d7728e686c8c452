// Pseudo-extended posterior of the latent vector of an image (Nemeth et al.
// 2019, eq. 8): q(z, beta) = gamma_beta(z) g(beta) on the geometric path
// from the base, the encoder's Gaussian or the prior.
functions {
  #include tempering.stanfunctions
  #include image_decoder/density.stanfunctions
}
data {
  int<lower=1> L; // latent dimensions
  int<lower=1> H1; // units of the first hidden layer
  int<lower=1> H2; // units of the second hidden layer
  int<lower=1> M; // pixels
  matrix[H1, L] weight_1; // weights and biases of the decoder
  vector[H1] bias_1;
  matrix[H2, H1] weight_2;
  vector[H2] bias_2;
  matrix[M, H2] weight_3;
  vector[M] bias_3;
  array[M] int<lower=0, upper=1> y; // the image
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/pseudo_samples.standata
}
transformed data {
  #include blocks/whitened_base.standata
  int uniform_g = is_uniform(log_g, g_shape);
  int uniform_pi = is_uniform(log_pi, pi_shape);
}
parameters {
  matrix[L, N] z; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] beta = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_prior = latent_log_prior(z);
  vector[N] log_gamma = log_prior
                        + image_log_probability(N, y, z, weight_1, bias_1,
                            weight_2, bias_2, weight_3, bias_3);
  vector[N] log_base = B
                       ? gaussian_base_log_density(z, N, whitened_mean,
                           whiten, base_constant)
                       : log_prior;
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
  vector[N] delta; // log b + log zeta - log gamma
  vector[N] log_weight;
  {
    vector[N] log_prior = latent_log_prior(z);
    vector[N] log_gamma = log_prior
                          + image_log_probability(N, y, z, weight_1, bias_1,
                              weight_2, bias_2, weight_3, bias_3);
    vector[N] log_base = B
                         ? gaussian_base_log_density(z, N, whitened_mean,
                             whiten, base_constant)
                         : log_prior;
    delta = log_base + log_zeta - log_gamma;
    log_weight = pseudo_extended_log_weight(
                   log_gamma
                   + log_inv_temp_density(inv_temp, pi_knot, log_pi,
                       pi_shape),
                   geometric_path(log_gamma, log_base, log_zeta, inv_temp)
                   + log_inv_temp_density(inv_temp, g_knot, log_g, g_shape));
  }
}

