// Flower: a ring whose radius goes up and down (Sejdinovic et al. 2014),
// on R^2.
functions {
  #include flower/density.stanfunctions
}
data {
  real<lower=0> r; // mean radius
  real<lower=0> A; // amplitude
  int<lower=1> w; // number of petals
  real<lower=0> s; // half width of the ring
}
parameters {
  vector[2] x;
}
model {
  target += flower_lpdf(x | r, A, w, s);
}

