// Ranks as threads: runs a schedule on every rank at once and judges the result.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "collective/execute/executor.hpp"
#include "collective/execute/links.hpp"
#include "collective/transport/local_mesh.hpp"
#include "kernels/digest.hpp"
#include "kernels/fill.hpp"

namespace railbreak::collective::testing {

inline Deadline soon() {
    return Deadline::after(std::chrono::seconds(60));
}

using Transports = std::vector<std::unique_ptr<Transport>>;

/// Runs `schedule` once on all ranks, each in its own thread, with the pattern of `seed`; expects the right digest
/// everywhere. The executors belong to the transports, so that run numbers continue.
class Ranks {
public:
    Ranks(Transports transports, const ExecutorOptions& options) : transports_(std::move(transports)) {
        for (const auto& transport : transports_) {
            executors_.push_back(std::make_unique<Executor>(*transport, options));
        }
    }

    void expect_allreduce(const Schedule& schedule, Dtype dtype, std::uint64_t seed) {
        const Rank ranks = schedule.ranks();
        const auto bytes = static_cast<std::size_t>(schedule.elements()) * size_of(dtype);
        std::vector<std::vector<std::byte>> vectors(static_cast<std::size_t>(ranks), std::vector<std::byte>(bytes));
        for (Rank rank = 0; rank < ranks; ++rank) {
            ASSERT_TRUE(kernels::fill(vectors[static_cast<std::size_t>(rank)], dtype, seed, rank, ranks).has_value());
        }
        const auto results = run(schedule, dtype, vectors);
        const std::string expected = kernels::expected_digest(seed, ranks, schedule.elements(), dtype).value();
        for (std::size_t rank = 0; rank < results.size(); ++rank) {
            ASSERT_TRUE(results[rank].has_value()) << results[rank].error().to_line();
            ASSERT_EQ(kernels::digest(vectors[rank]), expected)
                << schedule.name() << " " << to_string(dtype) << " elements " << schedule.elements() << " rank "
                << rank;
        }
    }

    std::vector<Result<ExecutionStats>> run(const Schedule& schedule, Dtype dtype,
                                            std::vector<std::vector<std::byte>>& vectors, Deadline deadline = soon()) {
        std::vector<Result<ExecutionStats>> results(executors_.size(), fail(ErrorKind::kInternal, "did not run"));
        std::vector<std::thread> threads;
        for (std::size_t rank = 0; rank < executors_.size(); ++rank) {
            threads.emplace_back(
                [&, rank] { results[rank] = executors_[rank]->run(schedule, dtype, vectors[rank], deadline); });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        return results;
    }

    Executor& executor(std::size_t rank) { return *executors_[rank]; }

private:
    Transports transports_;
    std::vector<std::unique_ptr<Executor>> executors_;
};

inline Ranks local_ranks(Rank ranks, Lane lanes, const ExecutorOptions& options = {}) {
    auto mesh = make_local_mesh(ranks, lanes);
    EXPECT_TRUE(mesh.has_value()) << mesh.error().to_line();
    return Ranks(std::move(*mesh), options);
}

/// Ranks with exactly the links of a schedule; those inside a host go through shared memory.
inline Ranks ranks_of(const Schedule& schedule, BitRate local_rate = {}, const ExecutorOptions& options = {}) {
    std::vector<std::vector<LinkSpec>> links;
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        links.push_back(links_of(schedule, rank));
    }
    auto mesh = make_local_mesh(links, local_rate);
    EXPECT_TRUE(mesh.has_value()) << mesh.error().to_line();
    return Ranks(std::move(*mesh), options);
}

} // namespace railbreak::collective::testing
