// Two Gaussians of unequal widths without their constants.
// docs/api/models.md explains its data.
data {
  int<lower=1> D; // dimension
  vector[2] centre; // all coordinates of each centre
  vector<lower=0>[2] sd; // standard deviations
  vector[2] log_height; // log densities at the centres
}
parameters {
  vector[D] x;
}
model {
  target += log_sum_exp(
                        log_height[1]
                        - 0.5 * dot_self((x - centre[1]) / sd[1]),
                        log_height[2]
                        - 0.5 * dot_self((x - centre[2]) / sd[2]));
}

