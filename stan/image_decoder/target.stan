// Latent vector of an image (Graham and Storkey 2017, section 7.4).
// docs/api/models.md explains its data.
//
// With the prior z ~ N(0, I) its normalising constant is the evidence p(y).
functions {
  #include image_decoder/density.stanfunctions
}
data {
  #include image_decoder/data.stanblock
}
parameters {
  vector[L] z;
}
model {
  target += std_normal_lpdf(z)
            + image_lpmf(y | z, weight_1, bias_1, weight_2, bias_2, weight_3,
                         bias_3);
}

