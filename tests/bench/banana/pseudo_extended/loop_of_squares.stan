// A loop over pseudo-samples, the squares written out.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
}
data {
  #include banana/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  real constant = -0.5 * (D * log(2 * pi()) + log(v));
}
parameters {
  matrix[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_gamma;
  for (i in 1 : N) {
    log_gamma[i] = constant
                   - 0.5
                     * (square(x[1, i]) / v
                        + square(x[2, i] - b * (square(x[1, i]) - v)));
    if (D > 2) {
      log_gamma[i] += -0.5 * dot_self(x[3 : , i]);
    }
  }
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}

