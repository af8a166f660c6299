#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collective/algorithm.hpp"
#include "collective/algorithms/auto_algorithm.hpp"
#include "collective/algorithms/halving_doubling.hpp"
#include "collective/algorithms/hierarchical.hpp"
#include "collective/algorithms/iccl_algorithm.hpp"
#include "collective/algorithms/optcc_algorithm.hpp"
#include "collective/algorithms/r2ccl_algorithm.hpp"
#include "collective/algorithms/ring_algorithm.hpp"
#include "collective/algorithms/stragglar_algorithm.hpp"
#include "collective/algorithms/tree.hpp"

namespace railbreak::collective {

const std::vector<const Algorithm*>& algorithms() {
    static const AutoAlgorithm automatic;
    static const RingAlgorithm ring;
    static const OptccAlgorithm optcc(false);
    static const OptccAlgorithm shared(true);
    static const OptccPatternsAlgorithm patterns;
    static const R2cclAlgorithm r2ccl;
    static const R2cclBalanceAlgorithm balance;
    static const IcclAlgorithm iccl;
    static const StragglarAlgorithm stragglar;
    static const HalvingDoublingAlgorithm halving_doubling;
    static const TreeAlgorithm tree;
    static const HierarchicalAlgorithm hierarchical;
    static const std::vector<const Algorithm*> all = {&ring,         &optcc,    &shared,    &patterns,         &r2ccl,
                                                      &balance,      &iccl,     &stragglar, &halving_doubling, &tree,
                                                      &hierarchical, &automatic};
    return all;
}

Result<const Algorithm*> find_algorithm(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Algorithm* algorithm : algorithms()) {
        if (algorithm->name() == name) {
            return algorithm;
        }
        names.push_back(algorithm->name());
    }
    return fail(Error(ErrorKind::kInput, fmt::format("there is no algorithm \"{}\"", name))
                    .advise(fmt::format("the algorithms are: {}", fmt::join(names, ", "))));
}

} // namespace railbreak::collective
