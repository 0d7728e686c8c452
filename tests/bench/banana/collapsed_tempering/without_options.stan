// No options: g is uniform, so that the integral is (1 - exp(-delta)) / delta.
functions {
  #include tempering.stanfunctions
}
data {
  #include banana/data.stanblock
  #include path/base.stanblock
}
transformed data {
  real constant = -0.5 * (D * log(2 * pi()) + log(v));
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  vector[D] x;
}
model {
  real square_1 = square(x[1]);
  real log_gamma = constant
                   - 0.5 * (square_1 / v + square(x[2] - b * (square_1 - v)));
  real log_base = log_norm - 0.5 * dot_self(whiten * x - shift);
  real delta = log_base + log_zeta - log_gamma;
  target += log_base
            + (delta > 0 ? log1m_exp(-delta) - log(delta)
               : log1m_exp(delta) - delta - log(-delta));
}

