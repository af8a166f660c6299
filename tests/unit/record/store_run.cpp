#include "tests/unit/record/store_run.hpp"

namespace railbreak::record {

namespace {

// The first error among the results of `store` for each row.
template <class Rows, class Store> Result<void> each(Rows& rows, std::int64_t run, Store store) {
    for (auto& row : rows) {
        row.run = run;
        if (const auto stored = store(row); !stored) {
            return tl::unexpected(stored.error());
        }
    }
    return {};
}

Result<void> store_rows(Recorder& recorder, RunData& data, std::int64_t run) {
    const auto iteration = [&](const IterationRow& row) {
        std::vector<RankIterationRow> ranks;
        for (const RankIterationRow& rank : data.rank_iterations) {
            if (rank.iteration == row.id) {
                ranks.push_back(rank);
            }
        }
        return recorder.add_iteration(row, ranks);
    };
    for (CounterRow& counter : data.counters) {
        counter.run = run;
    }
    return each(data.hosts, run, [&](const HostRow& row) { return recorder.add_host(row); })
        .and_then([&] { return each(data.nics, run, [&](const NicRow& row) { return recorder.add_nic(row); }); })
        .and_then([&] { return each(data.ranks, run, [&](const RankRow& row) { return recorder.add_rank(row); }); })
        .and_then([&] {
            return each(data.injections, run, [&](const InjectionRow& row) { return recorder.add_injection(row); });
        })
        .and_then([&] { return each(data.events, run, [&](const EventRow& row) { return recorder.add_event(row); }); })
        .and_then([&] { return each(data.iterations, run, iteration); })
        .and_then([&] { return recorder.add_counters(data.counters); })
        .and_then([&] { return each(data.bounds, run, [&](const BoundRow& row) { return recorder.add_bound(row); }); })
        .and_then([&] {
            return each(data.artefacts, run, [&](const ArtefactRow& row) { return recorder.add_artefact(row); });
        });
}

} // namespace

Result<std::int64_t> store_run(Recorder& recorder, RunData data) {
    const Result<std::int64_t> run = recorder.begin_run(data.run);
    if (!run) {
        return run;
    }
    if (const Result<void> stored = store_rows(recorder, data, *run); !stored) {
        return tl::unexpected(stored.error());
    }
    if (!data.verdicts.empty()) {
        const auto finished = recorder.finish_run(*run, data.run.finished_realtime_ns, data.verdicts);
        if (!finished) {
            return tl::unexpected(finished.error());
        }
    }
    return run;
}

} // namespace railbreak::record
