// Image decoder, collapsed tempering (beta integrated out).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include image_decoder/density.stanfunctions
}
data {
  #include image_decoder/data.stanblock
  #include collapsed_tempering/data.stanblock
}
transformed data {
  #include collapsed_tempering/prepared.stanblock
}
parameters {
  vector[L] z;
}
transformed parameters {
  // The base is the prior, or a Gaussian such as the encoder's.
  real log_base = std_normal_lpdf(z);
  real log_gamma = log_base
                   + image_lpmf(y | z, weight_1, bias_1, weight_2, bias_2,
                                weight_3, bias_3);
  if (B) {
    log_base = gaussian_base_lpdf(z | whitened_mean, whiten, base_constant);
  }
}
model {
  #include collapsed_tempering/model.stanblock
}
generated quantities {
  #include collapsed_tempering/generated.stanblock
}

