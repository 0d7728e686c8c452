// Continuously tempered relaxation of a Boltzmann machine with the inverse
// temperature integrated out: log p(x) = log b(x) + log integral of
// g(beta) exp(-beta Delta(x)), so that NUTS moves in x alone.  On a ladder
// the integral is a sum over its rungs.  Pure tempering is refused: on all
// of R^D its mass at beta = 0 is infinite, and log Z is relative to the base.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  int<lower=1> D; // dimension
  int<lower=1> D_b; // number of units of the machine
  matrix[D_b, D] Q; // Q Q' = W + diagonal
  vector[D_b] b; // biases
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/ladder.standata
}
transformed data {
  matrix[D_b, D + 1] coefficients = boltzmann_coefficients(Q, b);
  #include blocks/whitened_base.standata
  if (B == 0) {
    reject("continuous tempering of a Boltzmann machine relaxation needs a ",
           "Gaussian base: x is unbounded, and a flat base has infinite mass");
  }
}
parameters {
  vector[D] x;
}
model {
  real log_base = gaussian_base_lpdf(x | whitened_mean, whiten,
                    base_constant);
  real delta = log_base + log_zeta - boltzmann_lpdf(x | coefficients);
  target += log_base + log_tempered_mass(delta, g_knot, log_g, ladder);
}
generated quantities {
  real delta = gaussian_base_lpdf(x | whitened_mean, whiten, base_constant)
               + log_zeta - boltzmann_lpdf(x | coefficients);
  real inv_temp = inv_temp_rng(delta, g_knot, log_g, ladder);
  vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot,
                           log_g, ladder);
}

