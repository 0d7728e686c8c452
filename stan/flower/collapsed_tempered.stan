// Flower (Sejdinovic et al. 2014), continuously tempered, with the inverse
// temperature integrated out: log p(x) = log b(x) + log integral of
// g(beta) exp(-beta Delta(x)).  On a ladder the integral is a sum over its
// rungs.  It needs a Gaussian base: x is not bounded, so that a flat one
// (B = 0) has infinite mass.
functions {
  #include tempering.stanfunctions
  #include flower/density.stanfunctions
}
data {
  real<lower=0> r; // mean radius
  real<lower=0> A; // amplitude
  int<lower=1> w; // number of petals
  real<lower=0> s; // half width of the ring
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/ladder.standata
}
transformed data {
  #include blocks/whitened_base.standata
  if (B == 0) {
    reject("continuous tempering of the flower needs a Gaussian base: x is ",
           "not bounded, and a flat base has infinite mass");
  }
}
parameters {
  vector[2] x;
}
model {
  real log_base = gaussian_base_lpdf(x | whitened_mean, whiten,
                    base_constant);
  real delta = log_base + log_zeta - flower_lpdf(x | r, A, w, s);
  target += log_base + log_tempered_mass(delta, g_knot, log_g, ladder);
}
generated quantities {
  real delta = log_zeta - flower_lpdf(x | r, A, w, s)
               + gaussian_base_lpdf(x | whitened_mean, whiten, base_constant);
  real inv_temp = inv_temp_rng(delta, g_knot, log_g, ladder);
  vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot,
                           log_g, ladder);
}

