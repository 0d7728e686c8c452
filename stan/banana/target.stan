// Banana: a Gaussian bent along a parabola (Haario et al. 1999), on R^D.
// docs/api/models.md explains its data.
functions {
  #include banana/density.stanfunctions
}
data {
  #include banana/data.stanblock
}
parameters {
  vector[D] x;
}
model {
  target += banana_lpdf(x | v, b);
}

