// The plainest form, undefined at the origin.
data {
  #include flower/data.stanblock
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

