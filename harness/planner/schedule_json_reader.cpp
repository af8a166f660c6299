// The text is read event by event, and each event must be one that the place allows: a stack of places says where the
// reader is, and for each object which of its keys have come. "queues" is the last key of the document, so that ranks
// and lanes are known before the first step; rank and lane of a queue follow from its number.
#include <algorithm>
#include <array>
#include <istream>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/planner/listed_schedule.hpp"
#include "harness/planner/schedule_json.hpp"

namespace railbreak::planner {

namespace {

using collective::Lane;
using collective::Rank;
using collective::Stage;
using collective::Step;

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kMostNics = 64;
constexpr std::int64_t kMostNumber = std::numeric_limits<std::int64_t>::max();

enum class Place : std::uint8_t { kDocument, kHead, kQueues, kQueue, kPort, kSteps, kStep, kAfter };

constexpr std::array<std::string_view, 8> kHeadKeys = {"schema",           "version", "name",     "ranks",
                                                       "ranks_per_server", "lanes",   "elements", "queues"};
constexpr std::array<std::string_view, 5> kQueueKeys = {"rank", "lane", "port", "sends", "receives"};
constexpr std::array<std::string_view, 2> kPortKeys = {"kind", "nic"};
constexpr std::array<std::string_view, 6> kStepKeys = {"peer", "offset", "count", "stage", "combine", "after"};

std::span<const std::string_view> keys_of(Place place) {
    switch (place) {
    case Place::kHead: return kHeadKeys;
    case Place::kQueue: return kQueueKeys;
    case Place::kPort: return kPortKeys;
    case Place::kStep: return kStepKeys;
    case Place::kDocument:
    case Place::kQueues:
    case Place::kSteps:
    case Place::kAfter: return {};
    }
    return {};
}

std::optional<Stage> stage_of(std::string_view text) {
    for (const Stage stage :
         {Stage::kReduceScatter, Stage::kUpload, Stage::kDownload, Stage::kAllGather, Stage::kStarUp, Stage::kStarDown,
          Stage::kStarExchange, Stage::kLocalReduce, Stage::kLocalGather, Stage::kReduce, Stage::kBroadcast,
          Stage::kExchange, Stage::kProbe}) {
        if (text == collective::to_string(stage)) {
            return stage;
        }
    }
    return std::nullopt;
}

/// Receives the parser's events. Each returns false to stop, after setting error().
class Reader final : public nlohmann::json_sax<nlohmann::json> {
public:
    bool null() override { return wrong("null has no place here"); }
    bool boolean(bool) override { return wrong("true and false have no place here"); }
    bool number_float(number_float_t, const string_t& text) override {
        return wrong(fmt::format("{} is not a whole number", text));
    }
    bool binary(binary_t&) override { return wrong("binary data has no place here"); }
    bool number_integer(number_integer_t value) override { return number(value); }
    bool number_unsigned(number_unsigned_t value) override {
        return value > static_cast<number_unsigned_t>(kMostNumber) ? wrong(fmt::format("{} is too large", value))
                                                                   : number(static_cast<std::int64_t>(value));
    }

    bool string(string_t& text) override {
        const std::string_view key = places_.back().key;
        switch (places_.back().place) {
        case Place::kHead:
            if (key == "schema") {
                return text == kScheduleSchema || wrong(fmt::format("the schema is not \"{}\"", kScheduleSchema));
            }
            if (key == "name") {
                head_.name = text;
                return true;
            }
            break;
        case Place::kPort:
            if (key == "kind" && (text == "nic" || text == "local")) {
                queue().port.kind = text == "nic" ? collective::PortKind::kNic : collective::PortKind::kLocal;
                return true;
            }
            break;
        case Place::kStep:
            if (key == "stage") {
                const std::optional<Stage> stage = stage_of(text);
                step().stage = stage.value_or(Stage::kReduceScatter);
                return stage.has_value() || wrong(fmt::format("\"{}\" is no stage", text));
            }
            if (key == "combine" && (text == "copy" || text == "reduce")) {
                step().combine = text == "copy" ? collective::Combine::kCopy : collective::Combine::kReduce;
                return true;
            }
            break;
        case Place::kDocument:
        case Place::kQueues:
        case Place::kQueue:
        case Place::kSteps:
        case Place::kAfter: break;
        }
        return wrong(fmt::format("the text \"{}\" has no place here", text));
    }

    bool start_object(std::size_t) override {
        switch (places_.back().place) {
        case Place::kDocument:
            if (begun_) {
                break;
            }
            begun_ = true;
            return enter(Place::kHead);
        case Place::kQueues:
            if (queues_.size() >= static_cast<std::size_t>(head_.ranks) * static_cast<std::size_t>(head_.lanes)) {
                return wrong(
                    fmt::format("there are more queues than ranks times lanes ({} x {})", head_.ranks, head_.lanes));
            }
            queues_.emplace_back();
            return enter(Place::kQueue);
        case Place::kQueue:
            if (places_.back().key == "port") {
                return enter(Place::kPort);
            }
            break;
        case Place::kSteps: steps().emplace_back(); return enter(Place::kStep);
        case Place::kHead:
        case Place::kPort:
        case Place::kStep:
        case Place::kAfter: break;
        }
        return wrong("an object has no place here");
    }

    bool start_array(std::size_t) override {
        const std::string_view key = places_.back().key;
        switch (places_.back().place) {
        case Place::kHead:
            if (key == "queues") {
                return head_is_complete() && enter(Place::kQueues);
            }
            break;
        case Place::kQueue:
            if (key == "sends" || key == "receives") {
                sending_ = key == "sends";
                return enter(Place::kSteps);
            }
            break;
        case Place::kStep:
            if (key == "after") {
                waits_ = 0;
                return enter(Place::kAfter);
            }
            break;
        case Place::kDocument:
        case Place::kQueues:
        case Place::kPort:
        case Place::kSteps:
        case Place::kAfter: break;
        }
        return wrong("a list has no place here");
    }

    bool key(string_t& name) override {
        Level& level = places_.back();
        const std::span<const std::string_view> keys = keys_of(level.place);
        const auto found = std::ranges::find(keys, std::string_view(name));
        if (found == keys.end()) {
            return wrong(fmt::format("the key \"{}\" is unknown", name));
        }
        const std::uint32_t bit = 1U << static_cast<unsigned>(found - keys.begin());
        if ((level.seen & bit) != 0) {
            return wrong(fmt::format("the key \"{}\" stands twice", name));
        }
        level.key = *found;
        level.seen |= bit;
        return true;
    }

    bool end_object() override {
        const Level level = places_.back();
        const std::span<const std::string_view> keys = keys_of(level.place);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if ((level.seen >> i & 1U) == 0) {
                return wrong(fmt::format("the key \"{}\" is missing", keys[i]));
            }
        }
        if (level.place == Place::kStep && !step_fits()) {
            return false;
        }
        places_.pop_back();
        return true;
    }

    bool end_array() override {
        const Place place = places_.back().place;
        if (place == Place::kAfter && waits_ != static_cast<std::size_t>(head_.lanes)) {
            return wrong(fmt::format("\"after\" has {} numbers for {} lanes", waits_, head_.lanes));
        }
        if (place == Place::kQueues &&
            queues_.size() != static_cast<std::size_t>(head_.ranks) * static_cast<std::size_t>(head_.lanes)) {
            return wrong(
                fmt::format("there are {} queues for {} ranks and {} lanes", queues_.size(), head_.ranks, head_.lanes));
        }
        places_.pop_back();
        return true;
    }

    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
        const std::string_view text = error.what();
        const std::size_t reason = text.find("] ");
        error_ = fmt::format("not JSON at byte {}: {}", position,
                             reason == std::string_view::npos ? text : text.substr(reason + 2));
        return false;
    }

    [[nodiscard]] const std::string& error() const { return error_; }
    [[nodiscard]] ScheduleHead& head() { return head_; }
    [[nodiscard]] std::vector<LaneQueues>& queues() { return queues_; }

private:
    struct Level {
        Place place = Place::kDocument;
        std::uint32_t seen = 0; ///< a bit for each entry of keys_of(place)
        std::string_view key{}; ///< the last one
    };

    [[nodiscard]] LaneQueues& queue() { return queues_.back(); }
    [[nodiscard]] std::vector<Step>& steps() { return sending_ ? queue().sends : queue().receives; }
    [[nodiscard]] Step& step() { return steps().back(); }
    [[nodiscard]] Rank rank() const {
        return static_cast<Rank>((static_cast<std::int64_t>(queues_.size()) - 1) / head_.lanes);
    }
    [[nodiscard]] Lane lane() const {
        return static_cast<Lane>((static_cast<std::int64_t>(queues_.size()) - 1) % head_.lanes);
    }

    bool enter(Place place) {
        places_.push_back({place});
        return true;
    }

    bool wrong(const std::string& what) {
        std::string where;
        if (!queues_.empty() && places_.size() > 3) {
            where = fmt::format("rank {} lane {}: ", rank(), lane());
        }
        const bool in_step = std::ranges::any_of(places_, [](const Level& l) { return l.place == Place::kStep; });
        if (in_step) {
            where += fmt::format("{} {}: ", sending_ ? "send" : "receive", steps().size() - 1);
        }
        const std::string_view key = places_.back().key;
        error_ = fmt::format("{}{}{}", where, key.empty() ? "" : fmt::format("at \"{}\": ", key), what);
        return false;
    }

    bool within(std::int64_t value, std::int64_t least, std::int64_t most) {
        return (value >= least && value <= most) ||
               wrong(fmt::format("{} is not allowed; from {} to {} is", value, least, most));
    }

    bool number(std::int64_t value) {
        switch (places_.back().place) {
        case Place::kHead: return head_number(value);
        case Place::kQueue:
            if (places_.back().key == "rank") {
                return value == rank() || wrong(fmt::format("this is {}, but queues come rank by rank, and in each "
                                                            "lane by lane; here is the place of rank {}",
                                                            value, rank()));
            }
            if (places_.back().key == "lane") {
                return value == lane() || wrong(fmt::format("this is {}; here is the place of lane {}", value, lane()));
            }
            break;
        case Place::kPort:
            if (places_.back().key == "nic") {
                queue().port.nic = static_cast<std::int32_t>(value);
                return within(value, 0, kMostNics - 1);
            }
            break;
        case Place::kStep: return step_number(value);
        case Place::kAfter:
            if (waits_ == static_cast<std::size_t>(head_.lanes)) {
                return wrong(fmt::format("\"after\" has more numbers than there are lanes ({})", head_.lanes));
            }
            step().after[waits_++] = value;
            return within(value, 0, kMostNumber);
        case Place::kDocument:
        case Place::kQueues:
        case Place::kSteps: break;
        }
        return wrong("a number has no place here");
    }

    bool head_number(std::int64_t value) {
        const std::string_view key = places_.back().key;
        if (key == "version") {
            return value == kScheduleVersion ||
                   wrong(fmt::format("version {} is unknown; version {} can be read", value, kScheduleVersion));
        }
        if (key == "ranks") {
            head_.ranks = static_cast<Rank>(value);
            return within(value, 1, kMostRanks);
        }
        if (key == "ranks_per_server") {
            head_.ranks_per_server = static_cast<Rank>(value);
            return within(value, 1, kMostRanks);
        }
        if (key == "lanes") {
            head_.lanes = static_cast<Lane>(value);
            return within(value, 1, collective::kMaxLanes);
        }
        if (key == "elements") {
            head_.elements = value;
            return within(value, 1, kMostNumber);
        }
        return wrong("a number has no place here");
    }

    bool step_number(std::int64_t value) {
        const std::string_view key = places_.back().key;
        if (key == "peer") {
            step().peer = static_cast<Rank>(value);
            return within(value, 0, head_.ranks - 1) && (value != rank() || wrong("a rank does not send to itself"));
        }
        if (key == "offset") {
            step().slice.offset = value;
            return within(value, 0, head_.elements);
        }
        if (key == "count") {
            step().slice.count = value;
            return within(value, 0, head_.elements);
        }
        return wrong("a number has no place here");
    }

    bool head_is_complete() {
        for (std::size_t i = 0; i + 1 < kHeadKeys.size(); ++i) {
            if ((places_.back().seen >> i & 1U) == 0) {
                return wrong(fmt::format("\"{}\" must come before \"queues\"", kHeadKeys[i]));
            }
        }
        return head_.ranks % head_.ranks_per_server == 0 ||
               wrong(fmt::format("{} ranks do not make servers of {}", head_.ranks, head_.ranks_per_server));
    }

    bool step_fits() {
        const collective::Slice& slice = step().slice;
        return slice.offset <= head_.elements - slice.count ||
               wrong(fmt::format("elements {} to {} are not all in a vector of {}", slice.offset,
                                 slice.offset + (slice.count - 1), head_.elements));
    }

    std::vector<Level> places_{Level{}};
    std::string error_;
    ScheduleHead head_;
    std::vector<LaneQueues> queues_;
    bool begun_ = false;
    bool sending_ = false;
    std::size_t waits_ = 0;
};

/// What can be said only when all queues are known: that a step waits for steps that exist, and goes from a port to one
/// of its kind, an intra-host port to a rank of the same server. Empty when nothing is wrong.
std::string what_is_wrong(const ScheduleHead& head, const std::vector<LaneQueues>& queues) {
    const auto at = [&](Rank rank, Lane lane) -> const LaneQueues& {
        return queues[static_cast<std::size_t>(rank) * static_cast<std::size_t>(head.lanes) +
                      static_cast<std::size_t>(lane)];
    };
    const auto check = [&](Rank rank, Lane lane, bool sending, std::size_t index) -> std::string {
        const Step& step = (sending ? at(rank, lane).sends : at(rank, lane).receives)[index];
        const auto say = [&](const std::string& what) {
            return fmt::format("rank {} lane {}: {} {}: {}", rank, lane, sending ? "send" : "receive", index, what);
        };
        for (Lane other = 0; other < head.lanes; ++other) {
            const std::size_t there = sending ? at(rank, other).receives.size() : at(rank, other).sends.size();
            const std::int64_t needed = step.after[static_cast<std::size_t>(other)];
            if (needed > static_cast<std::int64_t>(there)) {
                return say(fmt::format("waits for {} steps of lane {}, which has {}", needed, other, there));
            }
        }
        const collective::PortKind kind = at(rank, lane).port.kind;
        if (at(step.peer, lane).port.kind != kind) {
            return say(fmt::format("rank {} has a port of another kind on this lane", step.peer));
        }
        if (kind == collective::PortKind::kLocal && rank / head.ranks_per_server != step.peer / head.ranks_per_server) {
            return say(fmt::format("rank {} is on another server than this intra-host port", step.peer));
        }
        return {};
    };
    for (Rank rank = 0; rank < head.ranks; ++rank) {
        for (Lane lane = 0; lane < head.lanes; ++lane) {
            for (const bool sending : {true, false}) {
                const LaneQueues& queue = at(rank, lane);
                for (std::size_t i = 0; i < (sending ? queue.sends : queue.receives).size(); ++i) {
                    if (std::string wrong = check(rank, lane, sending, i); !wrong.empty()) {
                        return wrong;
                    }
                }
            }
        }
    }
    return {};
}

} // namespace

Result<std::unique_ptr<const collective::Schedule>> read_schedule_json(std::istream& in) {
    Reader reader;
    const bool read = nlohmann::json::sax_parse(in, &reader);
    const std::string wrong = read ? what_is_wrong(reader.head(), reader.queues()) : reader.error();
    if (!wrong.empty()) {
        return fail(ErrorKind::kInput, fmt::format("no readable schedule: {}", wrong));
    }
    return std::make_unique<const ListedSchedule>(std::move(reader.head()), std::move(reader.queues()));
}

} // namespace railbreak::planner
