// Relaxation of a Boltzmann machine at an inverse temperature that a control
// variable u sets (Gobbo and Leimkuhler 2015; Graham and Storkey 2017,
// eq. 13): log p(x, u) = log gamma_beta(u)(x) + log g(beta(u)) - omega(u).
// Without a Gaussian base it is pure tempering, gamma_beta = gamma^beta,
// whose mass is finite as beta stays above g_knot[1] > 0.  Draws of x with
// |u| <= theta_1 are draws of the target.
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
  #include blocks/plateau.standata
}
transformed data {
  matrix[D_b, D + 1] coefficients = boltzmann_coefficients(Q, b);
  #include blocks/whitened_base.standata
  int uniform_g = is_uniform(log_g, ones_vector(2));
}
parameters {
  vector[D] x;
  real u; // temperature control variable
}
model {
  vector[1] beta = [plateau_inv_temp(u, theta, g_knot[1])]';
  real log_base = B
                  ? gaussian_base_lpdf(x | whitened_mean, whiten,
                      base_constant)
                  : 0;
  target += geometric_path(boltzmann_lpdf(x | coefficients), log_base,
                           log_zeta, beta[1])
            - confining_potential(u, theta);
  if (!uniform_g) {
    target += sum(piecewise_linear(beta, g_knot, log_g));
  }
}
generated quantities {
  real inv_temp = plateau_inv_temp(u, theta, g_knot[1]);
  real log_weight = plateau_log_weight(u, theta);
}

