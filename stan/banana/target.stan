// Banana: a Gaussian bent along a parabola (Haario et al. 1999), on R^D.
functions {
  #include banana/density.stanfunctions
}
data {
  int<lower=2> D; // dimension
  real<lower=0> v; // variance of x_1
  real b; // bend
}
parameters {
  vector[D] x;
}
model {
  target += banana_lpdf(x | v, b);
}

