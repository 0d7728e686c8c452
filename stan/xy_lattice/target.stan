// XY model: spins in the plane that turn towards their neighbours.
// docs/hard/xy_lattice.md explains its data.
//
// The density is that of the angles.  Each spin is a vector whose length has
// nothing to do with the model: a standard normal keeps it near 1, and no angle
// ends at pi.
data {
  int<lower=1> N; // number of spins
  int<lower=0> B; // number of bonds
  array[B, 2] int<lower=1, upper=N> bond; // neighbours
  real J; // strength of a bond
}
parameters {
  array[N] vector[2] x; // points whose directions are the spins
}
transformed parameters {
  vector[N] theta; // angles
  for (n in 1 : N) {
    theta[n] = atan2(x[n][2], x[n][1]);
  }
}
model {
  for (n in 1 : N) {
    x[n] ~ std_normal();
  }
  for (b in 1 : B) {
    target += J * cos(theta[bond[b, 1]] - theta[bond[b, 2]]);
  }
}

