// Phi-four chain with ends held at zero (Gabrie et al. 2022).
// docs/hard/phi_four.md explains its data.
data {
  int<lower=2> N; // number of sites
  real<lower=0> a; // stiffness of the chain
  real<lower=0> beta; // inverse temperature of the field theory
  real h; // outer field, which favours one sign
}
parameters {
  vector[N] x; // the field at each site
}
model {
  real bonds = square(x[1]) + dot_self(x[2 : N] - x[1 : N - 1])
               + square(x[N]);
  real wells = sum(square(1 - square(x)));
  target += h * sum(x) - beta * (0.5 * a * N * bonds + wells / (4 * a * N));
}

