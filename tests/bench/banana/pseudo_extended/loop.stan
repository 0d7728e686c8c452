// The obvious form: a loop over pseudo-samples calling normal_lpdf.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
}
data {
  #include banana/data.stanblock
  #include pseudo_extended/data.stanblock
}
parameters {
  matrix[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_gamma;
  for (i in 1 : N) {
    log_gamma[i] = normal_lpdf(x[1, i] | 0, sqrt(v))
                   + normal_lpdf(x[2, i] | b * (square(x[1, i]) - v), 1);
    if (D > 2) {
      log_gamma[i] += std_normal_lpdf(x[3 : , i]);
    }
  }
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}

