// Mixture for the stamps in means, precisions and weights themselves.
// docs/api/models.md explains its data.
//
// The posterior of stan/stamps/target.stan as a density of (mu, lambda, z,
// rate), minus infinity outside of their support: Table 1 of Leimkuhler et
// al. (2018) is about this narrow and uneven shape.
functions {
  #include stamps/density.stanfunctions
}
data {
  #include stamps/data.stanblock
}
transformed data {
  #include stamps/prepared.stanblock
}
parameters {
  vector[K] mu; // means of the components
  vector[K] lambda; // precisions of the components, positive
  vector[K - 1] z; // weights of all components but the last, positive
  real rate; // rate of the precisions' prior, positive
}
model {
  vector[2] part = stamps_raw_parts(thickness, stamps, mu, lambda, z, rate,
                                    centre, spread, K);
  target += sum(part) + stamps_log_inside(lambda, z, rate);
}

