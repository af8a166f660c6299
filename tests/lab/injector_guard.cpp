// The guard as a program of its own, the way an agent starts it.
#include <algorithm>
#include <string>
#include <vector>

#include "injectors/guard.hpp"

int main(int argc, char** argv) {
    const std::vector<std::string> args(argv + std::min(argc, 2), argv + argc);
    return railbreak::injectors::guard_main(args);
}
