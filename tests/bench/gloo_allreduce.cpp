// Gloo's ring AllReduce as a yardstick: one rank. The ranks find each other through files in a common folder.
//
//     gloo_allreduce --rank 0 --ranks 4 --address 10.77.0.1 --store FOLDER --algorithm ring|ring-chunked
#include <CLI/CLI.hpp>
#include <gloo/allreduce.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "base/units.hpp"
#include "tests/bench/allreduce_peer.hpp"

namespace {

struct Settings {
    int rank = 0;
    int ranks = 4;
    std::string address = "127.0.0.1";
    std::string store;
    std::string algorithm = "ring";
    std::string bytes = "64MiB";
    int iterations = 7;
    int warm_up = 2;
};

int run(const Settings& settings, std::vector<float>& vector) {
    gloo::rendezvous::FileStore store(settings.store);
    auto device = gloo::transport::tcp::CreateDevice(settings.address.c_str());
    const auto context = std::make_shared<gloo::rendezvous::Context>(settings.rank, settings.ranks);
    context->setTimeout(std::chrono::seconds(60));
    context->connectFullMesh(store, device);

    // Tags tell operations apart that run at the same time.
    constexpr std::uint32_t kVectorTag = 1;
    constexpr std::uint32_t kNumberTag = 2;
    constexpr std::uint32_t kBarrierTag = 3;
    gloo::AllreduceRingChunked<float> chunked(context, {vector.data()}, static_cast<int>(vector.size()));
    gloo::AllreduceOptions ring(context);
    ring.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    ring.setOutput(vector.data(), vector.size());
    ring.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    ring.setTag(kVectorTag);

    railbreak::bench::Peer peer;
    peer.rank = settings.rank;
    peer.ranks = settings.ranks;
    peer.barrier = [&context] {
        gloo::BarrierOptions options(context);
        options.setTag(kBarrierTag);
        gloo::barrier(options);
    };
    peer.allreduce = [&chunked, &ring, use_chunked = settings.algorithm == "ring-chunked"] {
        if (use_chunked) {
            chunked.run();
        } else {
            gloo::allreduce(ring);
        }
    };
    const auto of_all = [&context](std::int64_t value, void (*reduce)(void*, const void*, const void*, std::size_t)) {
        gloo::AllreduceOptions options(context);
        options.setOutput(&value, 1);
        options.setReduceFunction(reduce);
        options.setTag(kNumberTag);
        gloo::allreduce(options);
        return value;
    };
    peer.greatest_of = [&of_all](std::int64_t value) { return of_all(value, &gloo::max<std::int64_t>); };
    peer.sum_of = [&of_all](std::int64_t value) { return of_all(value, &gloo::sum<std::int64_t>); };
    return railbreak::bench::run_peer(peer, vector, settings.warm_up, settings.iterations);
}

} // namespace

int main(int argc, char** argv) {
    Settings settings;
    CLI::App app("Times Gloo's ring AllReduce");
    app.add_option("--rank", settings.rank)->required();
    app.add_option("--ranks", settings.ranks)->required();
    app.add_option("--address", settings.address);
    app.add_option("--store", settings.store)->required();
    app.add_option("--algorithm", settings.algorithm)->check(CLI::IsMember({"ring", "ring-chunked"}));
    app.add_option("--bytes", settings.bytes);
    app.add_option("--iterations", settings.iterations)->check(CLI::PositiveNumber);
    app.add_option("--warm-up", settings.warm_up);
    CLI11_PARSE(app, argc, argv);
    const auto size = railbreak::parse_byte_count(settings.bytes);
    if (!size) {
        std::fprintf(stderr, "gloo_allreduce: %s\n", size.error().to_line().c_str());
        return 1;
    }
    std::vector<float> vector(size->bytes() / sizeof(float));
    try {
        return run(settings, vector);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "gloo_allreduce: %s\n", error.what());
        return 1;
    }
}
