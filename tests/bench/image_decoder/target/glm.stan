// The last layer in one call of bernoulli_logit_glm_lpmf.
data {
  #include image_decoder/data.stanblock
}
parameters {
  vector[L] z;
}
model {
  target += std_normal_lpdf(z);
  target += bernoulli_logit_glm_lpmf(y | weight_3, bias_3,
              tanh(weight_2 * tanh(weight_1 * z + bias_1) + bias_2));
}

