// Pseudo-extended posterior of the latent vector of an image (Nemeth et al.
// 2019, eq. 3) with each inverse temperature integrated out of its own
// instrumental density, q(z) = b(z) times the integral of
// g(beta) exp(-beta Delta(z)), so that NUTS moves in the pseudo-samples
// alone.
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
  int<lower=1> N; // number of pseudo-samples
}
transformed data {
  #include blocks/whitened_base.standata
}
parameters {
  matrix[L, N] z; // pseudo-samples
}
model {
  vector[N] log_prior = latent_log_prior(z);
  vector[N] log_gamma = log_prior
                        + image_log_probability(N, y, z, weight_1, bias_1,
                            weight_2, bias_2, weight_3, bias_3);
  vector[N] log_base = B
                       ? gaussian_base_log_density(z, N, whitened_mean,
                           whiten, base_constant)
                       : log_prior;
  vector[N] log_q = log_base;
  for (n in 1 : N) {
    log_q[n] += log_tempered_mass(log_base[n] + log_zeta - log_gamma[n],
                  g_knot, log_g, ladder);
  }
  target += pseudo_extended_log_density(log_gamma, log_q);
}
generated quantities {
  vector[N] inv_temp; // drawn from its conditional under q
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
    vector[N] log_q = log_base;
    delta = log_base + log_zeta - log_gamma;
    for (n in 1 : N) {
      log_q[n] += log_tempered_mass(delta[n], g_knot, log_g, ladder);
      inv_temp[n] = inv_temp_rng(delta[n], g_knot, log_g, ladder);
    }
    log_weight = pseudo_extended_log_weight(log_gamma, log_q);
  }
}

