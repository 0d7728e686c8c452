// No options: the inverse temperature is sampled, and g is uniform.
functions {
  #include tempering.stanfunctions
  #include image_decoder/density.stanfunctions
}
data {
  #include image_decoder/data.stanblock
  #include path/base.stanblock
}
transformed data {
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  vector[L] z;
  real<lower=0, upper=1> inv_temp;
}
model {
  real log_gamma = std_normal_lpdf(z)
                   + image_lpmf(y | z, weight_1, bias_1, weight_2, bias_2,
                                weight_3, bias_3);
  real log_base = log_norm - 0.5 * dot_self(whiten * z - shift);
  target += log_base + inv_temp * (log_gamma - log_zeta - log_base);
}

