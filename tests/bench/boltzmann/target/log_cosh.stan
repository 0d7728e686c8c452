// The obvious form: the logarithm of cosh, which overflows beyond 710.
data {
  int<lower=1> D; // dimension
  int<lower=1> D_b; // number of units of the machine
  matrix[D_b, D] Q; // Q Q' = W + diagonal
  vector[D_b] b; // biases
}
parameters {
  vector[D] x;
}
model {
  target += sum(log(cosh(Q * x + b))) - 0.5 * dot_self(x);
}

