// Square lattices of narrow Gaussians of equal height, without constants.
// docs/api/models.md explains its data.
// The sum over a lattice is a product of a sum over its columns and one over
// its rows.  Squares are expanded about its centre: (u - m)^2 = u^2 - 2 u m
// + m^2 takes fewer operations for each of its means.
data {
  int<lower=1> G; // lattices
  array[G] int<lower=0> half; // columns, and rows, either side of the centre
  vector<lower=0>[G] spacing; // between neighbours
  array[G] vector[2] centre;
  real<lower=0> sigma; // standard deviation of each Gaussian
}
transformed data {
  // Of each lattice m and -m^2 / 2, in standard deviations; then zeros.
  array[G] matrix[2 * max(half) + 1, 2] basis;
  for (g in 1 : G) {
    int n = 2 * half[g] + 1;
    real edge = half[g] * spacing[g] / sigma;
    vector[n] m = linspaced_vector(n, -edge, edge);
    basis[g] = rep_matrix(0, 2 * max(half) + 1, 2);
    basis[g, 1 : n] = append_col(m, -0.5 * square(m));
  }
}
parameters {
  vector[2] x;
}
model {
  vector[G] log_sum;
  for (g in 1 : G) {
    int n = 2 * half[g] + 1;
    vector[2] u = (x - centre[g]) / sigma;
    log_sum[g] = log_sum_exp(basis[g, 1 : n] * [u[1], 1]')
                 + log_sum_exp(basis[g, 1 : n] * [u[2], 1]')
                 - 0.5 * dot_self(u);
  }
  target += log_sum_exp(log_sum);
}

