// The plainest form, undefined at the origin.
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
  target += -0.5
            * square(
                     (hypot(x[1], x[2]) - r - A * cos(w * atan2(x[2], x[1])))
                     / s);
}

