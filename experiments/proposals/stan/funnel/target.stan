// A funnel (Neal 2003) with four narrow coordinates, as in Murray (2007), section 3.1.
parameters {
  real v; // log variance of the others
  vector[4] x;
}
model {
  v ~ normal(0, 3);
  x ~ normal(0, exp(v / 2));
}
