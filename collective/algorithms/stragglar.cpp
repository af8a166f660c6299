#include "collective/algorithms/stragglar.hpp"

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/algorithms/flow_list.hpp"
#include "collective/split.hpp"

namespace railbreak::collective {

namespace {

constexpr Rank kNobody = -1;

/// log2, rounded up.
Rank levels_of(Rank ranks) {
    return static_cast<Rank>(std::bit_width(static_cast<std::uint32_t>(ranks - 1)));
}

/// The rule for p = 2^L. At the start of round r, L <= r <= p-2, the started but unfinished chunks are r-L .. r-1;
/// chunk r-a has 2^(a-1) holders besides S, and every member holds exactly one of them, its active chunk. Member r's is
/// the oldest, since it is about to give it up for chunk r.
class PowerOfTwoRounds {
public:
    explicit PowerOfTwoRounds(Rank ranks)
        : ranks_(ranks), levels_(levels_of(ranks)), active_(static_cast<std::size_t>(ranks), kNobody),
          next_empty_(2 * levels_ - 1) {}

    [[nodiscard]] SpreadRounds run() {
        SpreadRounds rounds;
        for (Rank round = 0; round < ranks_ - 2 + levels_; ++round) {
            rounds.push_back(round < levels_ ? first_copies(round) : swaps(round));
            if (round < ranks_ - 1) {
                active(round) = round;
                active(ranks_ - 1) = round;
            }
        }
        return rounds;
    }

private:
    [[nodiscard]] Rank& active(Rank role) { return active_[static_cast<std::size_t>(role)]; }

    /// While there are ranks without a chunk, holders only give: the newest to a reserved one, the others to the next.
    std::vector<ChunkCopy> first_copies(Rank round) {
        std::vector<ChunkCopy> copies;
        for (Rank holder = 0; holder < ranks_ - 1; ++holder) {
            if (active(holder) != kNobody && holder != round) {
                const Rank to = holder == round - 1 ? levels_ + round - 1 : next_empty_++;
                copies.push_back({holder, to, active(holder)});
            }
        }
        for (const ChunkCopy& copy : copies) {
            active(copy.to) = copy.chunk;
        }
        return copies;
    }

    /// Holders of the oldest chunk swap with the others, pair by pair. Those that will soon meet S get the oldest
    /// chunks there are, so that they hold the oldest one when their turn comes.
    std::vector<ChunkCopy> swaps(Rank round) {
        const Rank oldest = round - levels_;
        std::vector<Rank> soon;
        std::vector<Rank> givers;
        std::vector<Rank> others;
        const bool exchanging = round < ranks_ - 1;
        for (Rank role = 0; role < (exchanging ? ranks_ - 1 : ranks_); ++role) {
            if (exchanging && role == round) {
                continue;
            }
            const bool has_oldest = active(role) == oldest;
            const bool meets_soon = role > round && role < std::min(round + levels_, ranks_ - 1);
            (!has_oldest ? others : meets_soon ? soon : givers).push_back(role);
        }
        std::stable_sort(others.begin(), others.end(), [&](Rank a, Rank b) { return active(a) < active(b); });
        soon.insert(soon.end(), givers.begin(), givers.end());
        RB_CHECK(soon.size() == others.size(), "half of the ranks hold the oldest chunk");
        std::vector<ChunkCopy> copies;
        for (std::size_t i = 0; i < soon.size(); ++i) {
            for (const ChunkCopy& copy :
                 {ChunkCopy{soon[i], others[i], oldest}, ChunkCopy{others[i], soon[i], active(others[i])}}) {
                if (copy.to != ranks_ - 1) { // S has every chunk already
                    copies.push_back(copy);
                }
            }
            active(soon[i]) = active(others[i]);
        }
        return copies;
    }

    Rank ranks_;
    Rank levels_;
    std::vector<Rank> active_; ///< by role
    Rank next_empty_;          ///< the next member that starts without a chunk and is not reserved
};

/// Any number of ranks: in each round as many free receivers as possible get a free sender, by augmenting paths.
class MatchedRounds {
public:
    MatchedRounds(Rank ranks, std::uint64_t seed, bool hold_back)
        : ranks_(ranks), levels_(levels_of(ranks)), hold_back_(hold_back), random_(seed),
          holders_(static_cast<std::size_t>(ranks - 1)),
          holds_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks - 1)) {}

    /// Empty when more than `most` rounds would be needed.
    [[nodiscard]] SpreadRounds run(std::size_t most) {
        SpreadRounds rounds;
        for (Rank round = 0; oldest_ < ranks_ - 1; ++round) {
            if (rounds.size() == most) {
                return {};
            }
            match(round);
            std::vector<ChunkCopy> copies;
            for (Rank to = 0; to < ranks_; ++to) {
                if (source(to).from != kNobody) {
                    copies.push_back(source(to));
                }
            }
            for (const ChunkCopy& copy : copies) {
                take(copy.to, copy.chunk);
            }
            if (round < ranks_ - 1) {
                take(round, round);
                take(ranks_ - 1, round);
            }
            rounds.push_back(std::move(copies));
            while (oldest_ < ranks_ - 1 && std::ssize(holders(oldest_)) == ranks_) {
                ++oldest_;
            }
        }
        return rounds;
    }

private:
    [[nodiscard]] std::vector<Rank>& holders(Rank chunk) { return holders_[static_cast<std::size_t>(chunk)]; }
    [[nodiscard]] ChunkCopy& source(Rank to) { return source_[static_cast<std::size_t>(to)]; }
    [[nodiscard]] Rank& target(Rank from) { return target_[static_cast<std::size_t>(from)]; }
    [[nodiscard]] std::size_t cell(Rank role, Rank chunk) const {
        return static_cast<std::size_t>(role) * static_cast<std::size_t>(ranks_ - 1) + static_cast<std::size_t>(chunk);
    }

    void take(Rank role, Rank chunk) {
        holds_[cell(role, chunk)] = true;
        holders(chunk).push_back(role);
    }

    void match(Rank round) {
        round_ = round;
        source_.assign(static_cast<std::size_t>(ranks_), {kNobody, kNobody, kNobody});
        target_.assign(static_cast<std::size_t>(ranks_), kNobody);
        for (Rank chunk = oldest_; chunk < std::min(round, ranks_ - 1); ++chunk) {
            if (std::ssize(holders(chunk)) == ranks_) {
                continue;
            }
            for (const Rank to : receivers_of(chunk)) {
                seen_.assign(static_cast<std::size_t>(ranks_), false);
                if (!augment(to, chunk)) {
                    break; // the search begins at the holders of the chunk, so it fails for every other receiver too
                }
            }
        }
    }

    [[nodiscard]] bool exchanging(Rank role) const {
        return round_ < ranks_ - 1 && (role == round_ || role == ranks_ - 1);
    }
    [[nodiscard]] bool meets_soon(Rank role) const {
        return role >= round_ && role < std::min(round_ + levels_, ranks_ - 1);
    }

    /// Free ranks that lack the chunk, in random order, those that will soon meet S first.
    std::vector<Rank> receivers_of(Rank chunk) {
        std::vector<Rank> list;
        for (Rank role = 0; role < ranks_; ++role) {
            const bool too_new = hold_back_ && meets_soon(role) && chunk > role - levels_;
            if (!exchanging(role) && !holds_[cell(role, chunk)] && source(role).from == kNobody && !too_new) {
                list.push_back(role);
            }
        }
        for (std::size_t left = list.size(); left > 1; --left) {
            std::swap(list[left - 1], list[static_cast<std::size_t>(random_() % left)]);
        }
        std::stable_partition(list.begin(), list.end(), [&](Rank role) { return meets_soon(role); });
        return list;
    }

    /// Finds `to` a sender of the chunk: a free one, or one whose present receiver finds another.
    bool augment(Rank to, Rank chunk) {
        for (const bool busy : {false, true}) {
            for (const Rank from : holders(chunk)) {
                if (exchanging(from) || seen_[static_cast<std::size_t>(from)] || (target(from) != kNobody) != busy) {
                    continue;
                }
                seen_[static_cast<std::size_t>(from)] = true;
                const Rank displaced = target(from);
                if (displaced == kNobody || augment(displaced, source(displaced).chunk)) {
                    target(from) = to;
                    source(to) = {from, to, chunk};
                    return true;
                }
            }
        }
        return false;
    }

    Rank ranks_;
    Rank levels_;
    bool hold_back_;
    std::mt19937_64 random_;
    Rank round_ = 0;
    Rank oldest_ = 0;                        ///< first chunk that not all have
    std::vector<std::vector<Rank>> holders_; ///< by chunk
    std::vector<bool> holds_;                ///< by role and chunk
    std::vector<ChunkCopy> source_;          ///< by receiver, of this round
    std::vector<Rank> target_;               ///< by sender, of this round
    std::vector<bool> seen_;                 ///< senders tried on this path
};

} // namespace

SpreadRounds stragglar_rounds(Rank ranks, std::uint64_t seed) {
    RB_CHECK(ranks >= 3, "a straggler and two others");
    if (ranks >= 4 && std::has_single_bit(static_cast<std::uint32_t>(ranks))) {
        return PowerOfTwoRounds(ranks).run();
    }
    // An attempt takes time with about the fourth power of the ranks.
    const std::uint64_t attempts = ranks <= 32 ? 8 : ranks <= 96 ? 2 : 1;
    SpreadRounds best;
    std::size_t most = 3 * static_cast<std::size_t>(ranks) + 3;
    for (std::uint64_t attempt = 0; attempt < attempts; ++attempt) {
        for (const bool hold_back : {true, false}) {
            SpreadRounds rounds = MatchedRounds(ranks, seed + attempt, hold_back).run(most);
            if (!rounds.empty()) {
                most = rounds.size() - 1; // only a shorter one is of interest
                best = std::move(rounds);
            }
        }
    }
    RB_CHECK(!best.empty(), "matching spreads every chunk within 3p rounds");
    return best;
}

std::unique_ptr<const Schedule> make_stragglar(const StragglarParameters& parameters, const SpreadRounds& rounds) {
    const Rank members = parameters.ranks - 1;
    RB_CHECK(members >= 2 && parameters.straggler >= 0 && parameters.straggler <= members,
             "a straggler and two others");
    const auto rank_of = [&](Rank role) {
        return role == members ? parameters.straggler : role < parameters.straggler ? role : role + 1;
    };
    const EvenSplit chunks(parameters.elements, members);
    FlowList list(
        fmt::format("stragglar(p={},straggler={},rounds={})", parameters.ranks, parameters.straggler, rounds.size()),
        parameters.ranks, parameters.elements);
    for (Rank hop = 0; hop < members - 1; ++hop) {
        for (Rank member = 0; member < members; ++member) {
            const Rank chunk = (member - 1 - hop + 2 * members) % members;
            list.add({rank_of(member), rank_of((member + 1) % members), chunks.part(chunk), Stage::kReduceScatter,
                      Combine::kReduce});
        }
    }
    for (Rank round = 0; round < std::ssize(rounds); ++round) {
        if (round < members) {
            list.exchange(parameters.straggler, rank_of(round), chunks.part(round));
        }
        for (const ChunkCopy& copy : rounds[static_cast<std::size_t>(round)]) {
            list.add(
                {rank_of(copy.from), rank_of(copy.to), chunks.part(copy.chunk), Stage::kBroadcast, Combine::kCopy});
        }
    }
    return list.finish();
}

} // namespace railbreak::collective
