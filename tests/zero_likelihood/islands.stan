// Two islands with nothing between them, and nothing far out.
data {
  real y;
}
parameters {
  real x;
}
model {
  x ~ normal(0, 2);
  y ~ normal(abs(x), 0.3);
  if (abs(x) < 1.5 || abs(x) > 4) {
    target += negative_infinity(); // temper: yes
  }
}
