// A schedule written out as lists, so that tests can damage it.
#pragma once

#include <string>
#include <vector>

#include "collective/schedule.hpp"

namespace railbreak::collective::test {

class ListSchedule final : public Schedule {
public:
    explicit ListSchedule(const Schedule& model)
        : ranks_(model.ranks()), lanes_(model.lanes()), elements_(model.elements()), group_(model.ranks_per_server()),
          queues_(static_cast<std::size_t>(ranks_ * lanes_) * 2) {
        for (Rank rank = 0; rank < ranks_; ++rank) {
            for (Lane lane = 0; lane < lanes_; ++lane) {
                ports_.push_back(model.port(rank, lane));
                for (std::int64_t i = 0; i < model.send_count(rank, lane); ++i) {
                    sends(rank, lane).push_back(model.send_step(rank, lane, i));
                }
                for (std::int64_t i = 0; i < model.receive_count(rank, lane); ++i) {
                    receives(rank, lane).push_back(model.receive_step(rank, lane, i));
                }
            }
        }
    }
    /// Copies, so that one written-out schedule can be damaged in many ways.
    ListSchedule(const ListSchedule& other)
        : ranks_(other.ranks_), lanes_(other.lanes_), elements_(other.elements_), group_(other.group_),
          queues_(other.queues_), ports_(other.ports_) {}

    [[nodiscard]] std::vector<Step>& sends(Rank rank, Lane lane) { return queues_[number(rank, lane, 0)]; }
    [[nodiscard]] std::vector<Step>& receives(Rank rank, Lane lane) { return queues_[number(rank, lane, 1)]; }

    [[nodiscard]] Port& lane_port(Rank rank, Lane lane) {
        return ports_[static_cast<std::size_t>(rank * lanes_ + lane)];
    }
    void set_ranks_per_server(Rank group) { group_ = group; }

    [[nodiscard]] std::string name() const override { return "list"; }
    [[nodiscard]] Rank ranks_per_server() const override { return group_; }
    [[nodiscard]] Port port(Rank rank, Lane lane) const override {
        return ports_[static_cast<std::size_t>(rank * lanes_ + lane)];
    }
    [[nodiscard]] Rank ranks() const override { return ranks_; }
    [[nodiscard]] Lane lanes() const override { return lanes_; }
    [[nodiscard]] std::int64_t elements() const override { return elements_; }
    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override {
        return static_cast<std::int64_t>(queues_[number(rank, lane, 0)].size());
    }
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override {
        return static_cast<std::int64_t>(queues_[number(rank, lane, 1)].size());
    }
    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        return queues_[number(rank, lane, 0)][static_cast<std::size_t>(index)];
    }
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        return queues_[number(rank, lane, 1)][static_cast<std::size_t>(index)];
    }

private:
    [[nodiscard]] std::size_t number(Rank rank, Lane lane, int side) const {
        return static_cast<std::size_t>((rank * lanes_ + lane) * 2 + side);
    }

    Rank ranks_;
    Lane lanes_;
    std::int64_t elements_;
    Rank group_;
    std::vector<std::vector<Step>> queues_;
    std::vector<Port> ports_;
};

} // namespace railbreak::collective::test
