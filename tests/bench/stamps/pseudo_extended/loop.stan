// A loop over thicknesses and components calling normal_lpdf.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
  #include stamps/mixture.stanfunctions
}
data {
  #include stamps/data.stanblock
  #include pseudo_extended/data.stanblock
}
parameters {
  matrix[K, N] mu; // means of the components
  matrix<lower=0>[K, N] lambda; // precisions of the components
  matrix[K - 1, N] logit_z; // weights: log z_k - log z_K
  vector<lower=0>[N] rate; // rate of the precisions' prior
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  matrix[2, N] part;
  for (i in 1 : N) {
    part[ : , i] = stamps_two_parts(thickness, stamps, mu[ : , i],
                                    lambda[ : , i], logit_z[ : , i], rate[i],
                                    K);
  }
  target += pseudo_extended_log_density((part[1] + part[2])',
              part[2]' + inv_temp .* part[1]');
}

