"""What runs Stan: the toolchain, CmdStan's NUTS, stanli, and log densities at many points."""
