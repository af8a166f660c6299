// Open MPI's AllReduce as a yardstick: one rank, started by mpirun. Which algorithm it is, mpirun's --mca options say.
//
//     mpirun ... mpi_allreduce --bytes 64MiB
#include <CLI/CLI.hpp>
#include <mpi.h>

#include "base/units.hpp"
#include "tests/bench/allreduce_peer.hpp"

namespace {

/// MPI has been started, and aborts the whole job by itself when one of its calls fails.
int run(std::vector<float>& vector, int warm_up, int iterations) {
    railbreak::bench::Peer peer;
    MPI_Comm_rank(MPI_COMM_WORLD, &peer.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &peer.ranks);
    peer.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
    peer.allreduce = [&vector] {
        MPI_Allreduce(MPI_IN_PLACE, vector.data(), static_cast<int>(vector.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    peer.greatest_of = [](std::int64_t value) {
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
        return value;
    };
    peer.sum_of = [](std::int64_t value) {
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        return value;
    };
    return railbreak::bench::run_peer(peer, vector, warm_up, iterations);
}

} // namespace

int main(int argc, char** argv) {
    std::string bytes = "64MiB";
    int iterations = 7;
    int warm_up = 2;
    CLI::App app("Times Open MPI's AllReduce");
    app.add_option("--bytes", bytes);
    app.add_option("--iterations", iterations)->check(CLI::PositiveNumber);
    app.add_option("--warm-up", warm_up);
    CLI11_PARSE(app, argc, argv);
    const auto size = railbreak::parse_byte_count(bytes);
    if (!size) {
        std::fprintf(stderr, "mpi_allreduce: %s\n", size.error().to_line().c_str());
        return 1;
    }
    MPI_Init(&argc, &argv);
    std::vector<float> vector(size->bytes() / sizeof(float));
    const int status = run(vector, warm_up, iterations);
    MPI_Finalize();
    return status;
}
