// No options: g is uniform, so that each integral is (1 - exp(-delta)) / delta.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include path/base.stanblock
  int<lower=1> N; // number of pseudo-samples
}
transformed data {
  #include boltzmann/prepared.stanblock
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  matrix[D, N] x; // pseudo-samples
}
model {
  vector[N] log_gamma;
  vector[N] log_q;
  for (i in 1 : N) {
    log_gamma[i] = boltzmann_lpdf(x[ : , i] | coefficients);
    real log_base = log_norm - 0.5 * dot_self(whiten * x[ : , i] - shift);
    real delta = log_base + log_zeta - log_gamma[i];
    log_q[i] = log_base
               + (delta > 0 ? log1m_exp(-delta) - log(delta)
                  : log1m_exp(delta) - delta - log(-delta));
  }
  target += log_sum_exp(log_gamma - log_q) - log(N) + sum(log_q);
}

