// A loop over thicknesses and components calling normal_lpdf.
functions {
  #include stamps/mixture.stanfunctions
}
data {
  #include stamps/data.stanblock
}
parameters {
  vector[K] mu; // means of the components
  vector<lower=0>[K] lambda; // precisions of the components
  vector[K - 1] logit_z; // weights: log z_k - log z_K
  real<lower=0> rate; // rate of the precisions' prior
}
model {
  target += stamps_two_parts(thickness, stamps, mu, lambda, logit_z, rate, K);
}

