// No options: a Gaussian base and a flat bias of u.
functions {
  #include tempering.stanfunctions
  #include gaussian_mixture/density.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  #include extended_hamiltonian/data.stanblock
}
transformed data {
  #include gaussian_mixture/prepared.stanblock
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
  real u; // temperature control variable
}
model {
  real log_gamma = gaussian_mixture_lpdf(x | coefficients);
  real log_base = log_norm - 0.5 * dot_self(whiten * x - shift);
  real inv_temp = plateau_inv_temp(u, theta, g_knot[1]);
  target += log_base + inv_temp * (log_gamma - log_zeta - log_base)
            - confining_potential(u, theta);
}

