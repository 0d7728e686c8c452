// No options: g is uniform, so that each integral is (1 - exp(-delta)) / delta.
functions {
  #include tempering.stanfunctions
}
data {
  real<lower=0> r; // mean radius
  real<lower=0> A; // amplitude
  int<lower=1> w; // number of petals
  real<lower=0> s; // half width of the ring
  #include blocks/base.standata
  int<lower=1> N; // number of pseudo-samples
}
transformed data {
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  matrix[2, N] x; // pseudo-samples
}
model {
  vector[N] log_gamma;
  vector[N] log_q;
  for (i in 1 : N) {
    log_gamma[i] = -0.5
                   * square(
                            (hypot(x[1, i], x[2, i]) - r
                             - A * cos(w * atan2(x[2, i], x[1, i])))
                            / s);
    real log_base = log_norm - 0.5 * dot_self(whiten * x[ : , i] - shift);
    real delta = log_base + log_zeta - log_gamma[i];
    log_q[i] = log_base
               + (delta > 0 ? log1m_exp(-delta) - log(delta)
                  : log1m_exp(delta) - delta - log(-delta));
  }
  target += log_sum_exp(log_gamma - log_q) - log(N) + sum(log_q);
}

