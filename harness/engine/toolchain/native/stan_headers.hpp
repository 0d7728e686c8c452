// Everything of Stan's that model.cpp and a translated program include, compiled once ahead of them.
#pragma once
#include <cstdlib>
#include <stan/io/json/json_data.hpp>
#include <stan/model/model_header.hpp>
#include <stan/services/util/create_rng.hpp>
