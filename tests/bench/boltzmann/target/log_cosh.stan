// The obvious form: the logarithm of cosh, which overflows beyond 710.
data {
  #include boltzmann/data.stanblock
}
parameters {
  vector[D] x;
}
model {
  target += sum(log(cosh(Q * x + b))) - 0.5 * dot_self(x);
}

