// The sum of y as a product of its own, the constants apart.
data {
  #include boltzmann/data.stanblock
}
transformed data {
  matrix[D_b, D] slope = -2 * Q;
  vector[D_b] start = -2 * b;
  row_vector[D] total = ones_row_vector(D_b) * Q;
  real constant = sum(b) - D_b * log2();
}
parameters {
  vector[D] x;
}
model {
  target += sum(log1p_exp(slope * x + start)) + total * x + constant
            - 0.5 * dot_self(x);
}

