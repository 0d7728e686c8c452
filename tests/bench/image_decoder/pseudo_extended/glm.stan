// The last layer as a regression, by bernoulli_logit_glm_lpmf.
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
parameters {
  matrix[L, N] z; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_prior = latent_log_prior(z);
  vector[N] log_likelihood;
  for (i in 1 : N) {
    log_likelihood[i] = bernoulli_logit_glm_lpmf(y | weight_3, bias_3,
                          tanh(
                               weight_2 * tanh(weight_1 * z[ : , i] + bias_1)
                               + bias_2));
  }
  target += pseudo_extended_log_density(log_prior + log_likelihood,
              log_prior + inv_temp .* log_likelihood);
}

