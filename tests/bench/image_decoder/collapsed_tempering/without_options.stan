// No options: g is uniform, so that the integral is (1 - exp(-delta)) / delta.
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
}
model {
  real log_gamma = std_normal_lpdf(z)
                   + image_lpmf(y | z, weight_1, bias_1, weight_2, bias_2,
                                weight_3, bias_3);
  real log_base = log_norm - 0.5 * dot_self(whiten * z - shift);
  real delta = log_base + log_zeta - log_gamma;
  target += log_base
            + (delta > 0 ? log1m_exp(-delta) - log(delta)
               : log1m_exp(delta) - delta - log(-delta));
}

