// A part of the prior is rejected.
data {
  real y;
}
parameters {
  real x;
}
model {
  x ~ normal(0, 2);
  if (x < 1) {
    reject("x is too small");
  }
  y ~ normal(x, 0.5);
}
