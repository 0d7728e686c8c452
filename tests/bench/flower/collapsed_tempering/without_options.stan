// No options: g is uniform, so that the integral is (1 - exp(-delta)) / delta.
functions {
  #include tempering.stanfunctions
}
data {
  #include flower/data.stanblock
  #include path/base.stanblock
}
transformed data {
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  vector[2] x;
}
model {
  real log_gamma = -0.5
                   * square(
                            (hypot(x[1], x[2]) - r
                             - A * cos(w * atan2(x[2], x[1])))
                            / s);
  real log_base = log_norm - 0.5 * dot_self(whiten * x - shift);
  real delta = log_base + log_zeta - log_gamma;
  target += log_base
            + (delta > 0 ? log1m_exp(-delta) - log(delta)
               : log1m_exp(delta) - delta - log(-delta));
}

