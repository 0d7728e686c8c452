// Banana (Haario et al. 1999), continuously tempered, with the inverse
// temperature integrated out: log p(x) = log b(x) + log integral of
// g(beta) exp(-beta Delta(x)).  On a ladder the integral is a sum over its
// rungs.  It needs a Gaussian base: x is not bounded, so that a flat one
// (B = 0) has infinite mass.
functions {
  #include tempering.stanfunctions
  #include banana/density.stanfunctions
}
data {
  int<lower=2> D; // dimension
  real<lower=0> v; // variance of x_1
  real b; // bend
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/ladder.standata
}
transformed data {
  #include blocks/whitened_base.standata
  if (B == 0) {
    reject("continuous tempering of the banana needs a Gaussian base: x is ",
           "not bounded, and a flat base has infinite mass");
  }
}
parameters {
  vector[D] x;
}
model {
  real log_base = gaussian_base_lpdf(x | whitened_mean, whiten,
                    base_constant);
  real delta = log_base + log_zeta - banana_lpdf(x | v, b);
  target += log_base + log_tempered_mass(delta, g_knot, log_g, ladder);
}
generated quantities {
  real delta = log_zeta - banana_lpdf(x | v, b)
               + gaussian_base_lpdf(x | whitened_mean, whiten, base_constant);
  real inv_temp = inv_temp_rng(delta, g_knot, log_g, ladder);
  vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot,
                           log_g, ladder);
}

