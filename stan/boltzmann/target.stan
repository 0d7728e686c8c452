// Gaussian mixture relaxation of a Boltzmann machine of D_b units.
functions {
  #include boltzmann/density.stanfunctions
}
data {
  int<lower=1> D; // dimension
  int<lower=1> D_b; // number of units of the machine
  matrix[D_b, D] Q; // Q Q' = W + diagonal
  vector[D_b] b; // biases
}
transformed data {
  matrix[D_b, D + 1] coefficients = boltzmann_coefficients(Q, b);
}
parameters {
  vector[D] x;
}
model {
  target += boltzmann_lpdf(x | coefficients);
}

