// The squares written out.
data {
  #include banana/data.stanblock
}
transformed data {
  real constant = -0.5 * (D * log(2 * pi()) + log(v));
}
parameters {
  vector[D] x;
}
model {
  real square_1 = square(x[1]);
  target += constant
            - 0.5 * (square_1 / v + square(x[2] - b * (square_1 - v)));
  if (D > 2) {
    target += -0.5 * dot_self(tail(x, D - 2));
  }
}

