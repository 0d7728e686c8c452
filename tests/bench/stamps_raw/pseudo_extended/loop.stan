// A loop over thicknesses and components calling normal_lpdf.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
  #include stamps/density.stanfunctions
  #include stamps/mixture.stanfunctions
}
data {
  #include stamps/data.stanblock
  #include pseudo_extended/data.stanblock
}
parameters {
  matrix[K, N] mu; // means of the components
  matrix[K, N] lambda; // precisions of the components, positive
  matrix[K - 1, N] z; // weights of all components but the last, positive
  vector[N] rate; // rate of the precisions' prior, positive
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  matrix[2, N] part;
  for (i in 1 : N) {
    part[ : , i] = stamps_weights_parts(thickness, stamps, mu[ : , i],
                     lambda[ : , i], z[ : , i], rate[i], K);
  }
  target += pseudo_extended_log_density((part[1] + part[2])',
              part[2]' + inv_temp .* part[1]')
            + stamps_log_inside_each(lambda, z, rate, N);
}

