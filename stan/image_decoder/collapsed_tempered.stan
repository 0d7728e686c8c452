// Continuously tempered posterior of the latent vector of an image with the
// inverse temperature integrated out: log p(z) = log b(z) + log integral of
// g(beta) exp(-beta Delta(z)), so that NUTS moves in z alone.  On a ladder
// the integral is a sum over its rungs.
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
  #include blocks/ladder.standata
}
transformed data {
  #include blocks/whitened_base.standata
}
parameters {
  vector[L] z;
}
model {
  real log_prior = std_normal_lpdf(z);
  real log_gamma = log_prior
                   + image_lpmf(y | z, weight_1, bias_1, weight_2, bias_2,
                                weight_3, bias_3);
  real log_base = B
                  ? gaussian_base_lpdf(z | whitened_mean, whiten,
                      base_constant)
                  : log_prior;
  real delta = log_base + log_zeta - log_gamma;
  target += log_base + log_tempered_mass(delta, g_knot, log_g, ladder);
}
generated quantities {
  real delta; // log b + log zeta - log gamma
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
  }
  real inv_temp = inv_temp_rng(delta, g_knot, log_g, ladder);
  vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot,
                           log_g, ladder);
}

