#include "tests/unit/planner/msccl_checker.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <pugixml.hpp>

namespace railbreak::planner::test {

namespace {

struct Event {
    int gpu = 0;
    int block = 0;
    int index = 0;
    std::string type;
    int chunk = 0;
    int count = 0;
    int depid = 0;
    int deps = 0;
    bool hasdep = false;
    int send_peer = 0;
    int receive_peer = 0;
    int channel = 0;
    bool sends() const { return type == "s"; }
    bool receives() const { return type == "r" || type == "rrc"; }
};

class Checker {
public:
    std::string check(const std::string& xml) {
        if (!read(xml) || !match() || !find_order() || !check_races() || !check_data()) {
            return wrong_;
        }
        return {};
    }

private:
    bool wrong(std::string what) {
        wrong_ = std::move(what);
        return false;
    }
    static std::string name(const Event& event) {
        return fmt::format("gpu {} tb {} step {} ({})", event.gpu, event.block, event.index, event.type);
    }

    bool read(const std::string& xml) {
        pugi::xml_document document;
        if (const pugi::xml_parse_result parsed = document.load_string(xml.c_str()); !parsed) {
            return wrong(parsed.description());
        }
        const pugi::xml_node algo = document.child("algo");
        gpus_ = algo.attribute("ngpus").as_int();
        chunks_ = algo.attribute("nchunksperloop").as_int();
        channels_ = algo.attribute("nchannels").as_int();
        if (gpus_ < 2 || gpus_ > 64 || chunks_ < 1 || channels_ < 1) {
            return wrong("the head of the program makes no sense");
        }
        int gpus = 0;
        for (const pugi::xml_node gpu : algo.children("gpu")) {
            if (gpu.attribute("id").as_int(-1) != gpus++ || gpu.attribute("i_chunks").as_int() != chunks_) {
                return wrong("gpus are not numbered, or lack chunks");
            }
            if (!read_gpu(gpu)) {
                return false;
            }
        }
        return gpus == gpus_ || wrong("gpus are missing");
    }

    bool read_gpu(const pugi::xml_node& gpu) {
        const int id = gpu.attribute("id").as_int();
        std::set<std::tuple<int, int, bool>> connections;
        int blocks = 0;
        for (const pugi::xml_node tb : gpu.children("tb")) {
            if (tb.attribute("id").as_int(-1) != blocks) {
                return wrong("thread blocks are not numbered from 0");
            }
            Event event{.gpu = id,
                        .block = blocks++,
                        .send_peer = tb.attribute("send").as_int(-2),
                        .receive_peer = tb.attribute("recv").as_int(-2),
                        .channel = tb.attribute("chan").as_int(-1)};
            if (event.channel < 0 || event.channel >= channels_ || event.send_peer == id || event.receive_peer == id) {
                return wrong(fmt::format("gpu {} tb {}: channel or peer makes no sense", id, event.block));
            }
            if ((event.send_peer >= 0 && !connections.insert({event.send_peer, event.channel, true}).second) ||
                (event.receive_peer >= 0 && !connections.insert({event.receive_peer, event.channel, false}).second)) {
                return wrong(fmt::format("gpu {} tb {}: a connection belongs to two thread blocks", id, event.block));
            }
            if (!read_steps(tb, event)) {
                return false;
            }
        }
        return true;
    }

    bool read_steps(const pugi::xml_node& tb, Event event) {
        int index = 0;
        for (const pugi::xml_node step : tb.children("step")) {
            event.index = step.attribute("s").as_int(-1);
            event.type = step.attribute("type").as_string();
            event.chunk = step.attribute("srcoff").as_int(-2);
            event.count = step.attribute("cnt").as_int(-1);
            event.depid = step.attribute("depid").as_int(-2);
            event.deps = step.attribute("deps").as_int(-2);
            event.hasdep = step.attribute("hasdep").as_int() == 1;
            const bool data = event.sends() || event.receives();
            if (event.index != index++ || event.chunk != step.attribute("dstoff").as_int(-3)) {
                return wrong(name(event) + ": number or offsets");
            }
            if (data ? event.chunk < 0 || event.count < 1 || event.count > 71 || event.chunk + event.count > chunks_
                     : event.type != "nop" || event.depid < 0 || event.hasdep) {
                return wrong(name(event) + ": type, chunks, or a nop that waits for nothing");
            }
            if ((event.sends() && event.send_peer < 0) || (event.receives() && event.receive_peer < 0)) {
                return wrong(name(event) + ": the thread block has no such connection");
            }
            const bool after_nop = index > 1 && events_.back().type == "nop";
            if (after_nop && event.depid < 0) {
                return wrong(name(event) + ": after a nop, the next step must wait as well");
            }
            number_[{event.gpu, event.block, event.index}] = events_.size();
            events_.push_back(event);
        }
        return index > 0 && events_.back().type != "nop" ? true : wrong("a thread block is empty or ends in a nop");
    }

    /// Fills partner_: for each send its receive and the other way round.
    bool match() {
        std::map<std::tuple<int, int, int>, std::vector<std::size_t>> sent;
        std::map<std::tuple<int, int, int>, std::vector<std::size_t>> received;
        partner_.assign(events_.size(), 0);
        std::set<std::size_t> awaited;
        for (std::size_t i = 0; i < events_.size(); ++i) {
            const Event& event = events_[i];
            if (event.sends()) {
                sent[{event.gpu, event.send_peer, event.channel}].push_back(i);
            } else if (event.receives()) {
                received[{event.receive_peer, event.gpu, event.channel}].push_back(i);
            }
            if (event.depid >= 0) {
                const auto target = number_.find({event.gpu, event.depid, event.deps});
                if (target == number_.end() || event.depid == event.block || !events_[target->second].hasdep) {
                    return wrong(name(event) + ": waits for a step that is not there or does not tell");
                }
                awaited.insert(target->second);
            }
        }
        for (std::size_t i = 0; i < events_.size(); ++i) {
            if (events_[i].hasdep != awaited.contains(i)) {
                return wrong(name(events_[i]) + ": hasdep is wrong");
            }
        }
        if (sent.size() != received.size()) {
            return wrong("a connection has only one end");
        }
        for (const auto& [connection, sends] : sent) {
            const std::vector<std::size_t>& receives = received[connection];
            if (sends.size() != receives.size()) {
                return wrong("a connection has more sends than receives, or fewer");
            }
            for (std::size_t i = 0; i < sends.size(); ++i) {
                const Event& send = events_[sends[i]];
                const Event& receive = events_[receives[i]];
                if (send.chunk != receive.chunk || send.count != receive.count) {
                    return wrong(fmt::format("{} and {} differ", name(send), name(receive)));
                }
                partner_[sends[i]] = receives[i];
                partner_[receives[i]] = sends[i];
                before_on_connection_[sends[i]] = i > 0 ? static_cast<std::int64_t>(receives[i - 1]) : -1;
            }
        }
        return true;
    }

    [[nodiscard]] std::int64_t wait_of(std::size_t i) const {
        return events_[i].depid < 0
                   ? -1
                   : static_cast<std::int64_t>(number_.at({events_[i].gpu, events_[i].depid, events_[i].deps}));
    }

    /// A topological order of starts (2i) and ends (2i+1) of all steps.
    bool find_order() {
        const std::size_t nodes = 2 * events_.size();
        std::vector<std::vector<std::size_t>> next(nodes);
        std::vector<int> incoming(nodes, 0);
        const auto edge = [&](std::size_t from, std::size_t to) {
            next[from].push_back(to);
            ++incoming[to];
        };
        for (std::size_t i = 0; i < events_.size(); ++i) {
            edge(2 * i, 2 * i + 1);
            if (events_[i].index > 0) {
                edge(2 * (i - 1) + 1, 2 * i);
            }
            if (const std::int64_t wait = wait_of(i); wait >= 0) {
                edge(2 * static_cast<std::size_t>(wait) + 1, 2 * i);
            }
            if (events_[i].sends()) {
                edge(2 * i + 1, 2 * partner_[i] + 1);
                if (events_[i].count > 1) {
                    edge(2 * partner_[i], 2 * i + 1);
                }
                if (const std::int64_t former = before_on_connection_.at(i); former >= 0) {
                    edge(2 * static_cast<std::size_t>(former) + 1, 2 * i + 1);
                }
            }
        }
        std::vector<std::size_t> ready;
        for (std::size_t node = 0; node < nodes; ++node) {
            if (incoming[node] == 0) {
                ready.push_back(node);
            }
        }
        std::size_t done = 0;
        while (!ready.empty()) {
            const std::size_t node = ready.back();
            ready.pop_back();
            ++done;
            if (node % 2 == 1) {
                order_.push_back(node / 2);
            }
            for (const std::size_t to : next[node]) {
                if (--incoming[to] == 0) {
                    ready.push_back(to);
                }
            }
        }
        return done == nodes || wrong("the program deadlocks");
    }

    /// before_[i]: the steps that have ended whenever step i begins to touch data.
    bool check_races() {
        before_.assign(events_.size(), std::vector<bool>(events_.size(), false));
        const auto inherit = [&](std::size_t to, std::size_t from) {
            before_[to][from] = true;
            for (std::size_t i = 0; i < events_.size(); ++i) {
                if (before_[from][i]) {
                    before_[to][i] = true;
                }
            }
        };
        for (const std::size_t i : order_) {
            if (events_[i].index > 0) {
                inherit(i, i - 1);
            }
            if (const std::int64_t wait = wait_of(i); wait >= 0) {
                inherit(i, static_cast<std::size_t>(wait));
            }
            if (events_[i].receives()) {
                inherit(i, partner_[i]);
            }
        }
        for (std::size_t i = 0; i < events_.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                const Event& a = events_[i];
                const Event& b = events_[j];
                const bool touch = a.gpu == b.gpu && a.count > 0 && b.count > 0 && a.chunk < b.chunk + b.count &&
                                   b.chunk < a.chunk + a.count && (a.receives() || b.receives());
                if (touch && !before_[i][j] && !before_[j][i]) {
                    return wrong(fmt::format("{} and {} race", name(a), name(b)));
                }
            }
        }
        return true;
    }

    bool check_data() {
        const std::uint64_t full = gpus_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << gpus_) - 1;
        std::vector<std::vector<std::uint64_t>> has(static_cast<std::size_t>(gpus_));
        for (std::size_t gpu = 0; gpu < has.size(); ++gpu) {
            has[gpu].assign(static_cast<std::size_t>(chunks_), std::uint64_t{1} << gpu);
        }
        std::map<std::size_t, std::vector<std::uint64_t>> carried;
        for (const std::size_t i : order_) {
            const Event& event = events_[i];
            std::vector<std::uint64_t>& own = has[static_cast<std::size_t>(event.gpu)];
            for (int k = 0; k < event.count; ++k) {
                std::uint64_t& value = own[static_cast<std::size_t>(event.chunk + k)];
                if (event.sends()) {
                    carried[i].push_back(value);
                    continue;
                }
                const std::uint64_t arrived = carried[partner_[i]][static_cast<std::size_t>(k)];
                const bool adds = event.type == "rrc";
                if (adds && (value & arrived) != 0) {
                    return wrong(name(event) + ": adds a value twice");
                }
                value = adds ? value | arrived : arrived;
            }
        }
        for (const std::vector<std::uint64_t>& own : has) {
            for (const std::uint64_t value : own) {
                if (value != full) {
                    return wrong("a sum is incomplete in the end");
                }
            }
        }
        return true;
    }

    int gpus_ = 0;
    int chunks_ = 0;
    int channels_ = 0;
    std::vector<Event> events_;
    std::map<std::tuple<int, int, int>, std::size_t> number_; // gpu, thread block, step
    std::vector<std::size_t> partner_;
    std::map<std::size_t, std::int64_t> before_on_connection_;
    std::vector<std::size_t> order_;
    std::vector<std::vector<bool>> before_;
    std::string wrong_;
};

} // namespace

std::string what_is_wrong_with_program(const std::string& xml) {
    return Checker().check(xml);
}

} // namespace railbreak::planner::test
