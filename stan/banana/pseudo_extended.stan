// Banana, pseudo-extended (Nemeth et al. 2019, eq. 8).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include banana/density.stanfunctions
}
data {
  #include banana/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  #include pseudo_extended/prepared.stanblock
}
parameters {
  matrix[D, N] x; // pseudo-samples
  #include pseudo_extended/parameters.stanblock
}
transformed parameters {
  // Pure tempering has finite mass only if beta is bounded away from 0, by
  // g_knot[1]: x is not bounded.
  vector[N] log_gamma = banana_log_density(x, v, b);
  vector[B ? N : 0] log_base = B
                               ? gaussian_base_log_density(x, N,
                                   whitened_mean, whiten, base_constant)
                               : zeros_vector(0); // b = 1
}
model {
  #include pseudo_extended/model.stanblock
}
generated quantities {
  #include pseudo_extended/generated.stanblock
}

