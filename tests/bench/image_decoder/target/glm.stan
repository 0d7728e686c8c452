// The last layer in one call of bernoulli_logit_glm_lpmf.
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
}
parameters {
  vector[L] z;
}
model {
  target += std_normal_lpdf(z);
  target += bernoulli_logit_glm_lpmf(y | weight_3, bias_3,
              tanh(weight_2 * tanh(weight_1 * z + bias_1) + bias_2));
}

