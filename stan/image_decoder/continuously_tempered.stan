// Continuously tempered posterior of the latent vector of an image (Graham
// and Storkey 2017, eq. 16): log p(z, beta) = log gamma_beta(z) + log g(beta)
// on the geometric path from the base, the encoder's Gaussian or the prior.
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
  #include blocks/inv_temp.standata
}
transformed data {
  #include blocks/whitened_base.standata
  int uniform_g = is_uniform(log_g, ones_vector(2));
}
parameters {
  vector[L] z;
  vector<lower=0, upper=1>[sample_inv_temp] free_inv_temp;
}
model {
  real beta = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  real log_prior = std_normal_lpdf(z);
  real log_gamma = log_prior
                   + image_lpmf(y | z, weight_1, bias_1, weight_2, bias_2,
                                weight_3, bias_3);
  real log_base = B
                  ? gaussian_base_lpdf(z | whitened_mean, whiten,
                      base_constant)
                  : log_prior;
  target += geometric_path(log_gamma, log_base, log_zeta, beta);
  if (!uniform_g) {
    target += sum(piecewise_linear([beta]', g_knot, log_g));
  }
}
generated quantities {
  real inv_temp = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  real delta; // log b + log zeta - log gamma
  vector[2] log_weight;
  {
    real log_prior = std_normal_lpdf(z);
    real log_gamma = log_prior
                     + image_lpmf(y | z, weight_1, bias_1, weight_2, bias_2,
                                  weight_3, bias_3);
    real log_base = B
                    ? gaussian_base_lpdf(z | whitened_mean, whiten,
                        base_constant)
                    : log_prior;
    delta = log_base + log_zeta - log_gamma;
    log_weight = continuous_tempering_log_weight(delta, g_knot, log_g, 0);
  }
}

