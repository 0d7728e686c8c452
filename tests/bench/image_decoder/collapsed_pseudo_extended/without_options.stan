// No options: g is uniform, so that each integral is (1 - exp(-delta)) / delta.
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
  int<lower=1> N; // number of pseudo-samples
}
transformed data {
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  matrix[L, N] z; // pseudo-samples
}
model {
  vector[N] log_gamma;
  vector[N] log_q;
  for (i in 1 : N) {
    log_gamma[i] = std_normal_lpdf(z[ : , i])
                   + image_lpmf(y | z[ : , i], weight_1, bias_1, weight_2,
                                bias_2, weight_3, bias_3);
    real log_base = log_norm - 0.5 * dot_self(whiten * z[ : , i] - shift);
    real delta = log_base + log_zeta - log_gamma[i];
    log_q[i] = log_base
               + (delta > 0 ? log1m_exp(-delta) - log(delta)
                  : log1m_exp(delta) - delta - log(-delta));
  }
  target += log_sum_exp(log_gamma - log_q) - log(N) + sum(log_q);
}

