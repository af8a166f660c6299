#include "harness/controller/survey_hosts.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/units.hpp"
#include "harness/controller/agent_pool.hpp"

namespace railbreak::controller {

using launch::Json;

namespace {

/// For agents that hold nothing to end; those that do not are killed.
constexpr Nanoseconds kEndGrace = std::chrono::seconds(1);
/// An agent that is busy with its survey must not count as silent before the timeout is over.
constexpr int kLeaseOverTimeout = 2;

/// A host whose agent was started.
struct Asked {
    std::size_t answer = 0; ///< its place among the answers
    std::int32_t link = 0;  ///< its place in the pool
    std::optional<std::int64_t> request{};
    std::optional<Result<Json>> reply{};
};

/// Asks as soon as the agent has said hello, and takes the answer. True when nothing more is to come.
bool settle(AgentPool& pool, Asked& asked, const Json& order) {
    AgentLink& link = pool.link(asked.link);
    if (!asked.reply && !asked.request && link.said_hello()) {
        const Result<std::int64_t> sent = link.request("survey", order);
        if (sent) {
            asked.request = *sent;
        } else {
            asked.reply = tl::unexpected<Error>(sent.error());
        }
    }
    if (!asked.reply && asked.request) {
        asked.reply = link.take(*asked.request);
    }
    return asked.reply.has_value() || (link.lost() && !asked.request);
}

Result<agent::HostSurvey> answer_of(AgentPool& pool, const Asked& asked, Nanoseconds timeout) {
    if (asked.reply) {
        return asked.reply->and_then(agent::host_survey_from_json);
    }
    const AgentLink& link = pool.link(asked.link);
    if (!link.lost()) {
        return fail(Error(ErrorKind::kHarness, fmt::format("no answer within {}", to_string(timeout)))
                        .with("agent", link.said_hello() ? "started" : "not started"));
    }
    Error error = *link.lost_reason();
    std::string last_words = link.stderr_tail();
    last_words.erase(last_words.find_last_not_of('\n') + 1);
    return fail(last_words.empty() ? std::move(error) : std::move(error).with("stderr", last_words));
}

} // namespace

Result<std::vector<HostAnswer>> survey_hosts(const std::vector<HostChannel>& channels, const agent::SurveyOrder& order,
                                             Nanoseconds timeout) {
    const Deadline deadline = Deadline::after(timeout);
    Result<std::unique_ptr<AgentPool>> pool =
        AgentPool::create(timeout * kLeaseOverTimeout, [](std::int32_t, const launch::RpcMessage&) {});
    if (!pool) {
        return fail(std::move(pool.error()));
    }
    std::vector<HostAnswer> answers;
    std::vector<Asked> asked;
    for (const HostChannel& channel : channels) {
        answers.push_back({channel.name, fail(ErrorKind::kInternal, "not asked")});
        Result<launch::Child> child = launch::spawn({.argv = channel.argv});
        if (!child) {
            answers.back().survey = fail(std::move(child.error()));
            continue;
        }
        asked.push_back({.answer = answers.size() - 1, .link = static_cast<std::int32_t>(asked.size())});
        (*pool)->add(asked.back().link, channel.name, std::move(*child));
    }
    const Json parameters = to_json(order);
    const auto all_settled = [&] {
        bool all = true;
        for (Asked& one : asked) {
            all = settle(**pool, one, parameters) && all;
        }
        return all;
    };
    const Result<void> waited = (*pool)->wait_until(all_settled, deadline, "every host's answer");
    for (const Asked& one : asked) {
        answers[one.answer].survey = answer_of(**pool, one, timeout);
    }
    // Whatever could not be confirmed here: these agents have changed nothing.
    (void)(*pool)->shut_down(kEndGrace);
    if (!waited && !(*pool)->interrupted_by().empty()) {
        return fail(Error(waited.error()));
    }
    return answers;
}

} // namespace railbreak::controller
