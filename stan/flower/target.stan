// Flower: a ring whose radius goes up and down (Sejdinovic et al. 2014).
// docs/api/models.md explains its data.
functions {
  #include flower/density.stanfunctions
}
data {
  #include flower/data.stanblock
}
parameters {
  vector[2] x;
}
model {
  target += flower_lpdf(x | r, A, w, s);
}

