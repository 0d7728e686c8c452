// A loop over thicknesses and components calling normal_lpdf.
functions {
  #include stamps/mixture.stanfunctions
}
data {
  #include stamps/data.stanblock
}
parameters {
  vector[K] mu; // means of the components
  vector[K] lambda; // precisions of the components, positive
  vector[K - 1] z; // weights of all components but the last, positive
  real rate; // rate of the precisions' prior, positive
}
model {
  target += stamps_whole(thickness, stamps, mu, lambda, z, rate, K);
}

