// Many pairs of a double well and a Gaussian, all independent.
// docs/hard/many_wells.md explains its data.
data {
  int<lower=1> P; // number of pairs
}
parameters {
  vector[P] a; // in a double well, tilted to the right
  vector[P] b; // Gaussian
}
model {
  target += sum(0.5 * a + 6 * square(a) - square(square(a)));
  target += -0.5 * dot_self(b);
}

