// No options: g is uniform, so that the integral is (1 - exp(-delta)) / delta.
functions {
  #include tempering.stanfunctions
  #include gaussian_mixture/density.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  #include path/base.stanblock
}
transformed data {
  #include gaussian_mixture/prepared.stanblock
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
}
model {
  real log_gamma = gaussian_mixture_lpdf(x | coefficients);
  real log_base = log_norm - 0.5 * dot_self(whiten * x - shift);
  real delta = log_base + log_zeta - log_gamma;
  target += log_base
            + (delta > 0 ? log1m_exp(-delta) - log(delta)
               : log1m_exp(delta) - delta - log(-delta));
}

