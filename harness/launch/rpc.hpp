// JSON-RPC 2.0 messages, one a line (NDJSON), and Errors that survive the trip with kind, facts and advice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace railbreak::launch {

using Json = nlohmann::json;

/// Version of the conversation between controller, agent and rank. Both ends must agree.
inline constexpr std::int64_t kProtocolVersion = 1;

/// What a rank says, unasked, of a path on which TCP resends and nobody answers; its agent passes it on.
inline constexpr std::string_view kPathStalled = "path_stalled";

/// One decoded line. A request has id and method; a notification only a method; a reply has id and result or error.
struct RpcMessage {
    std::optional<std::int64_t> id;
    std::string method;
    Json params = Json::object();
    Json result;
    std::optional<Error> error;
    [[nodiscard]] bool is_reply() const { return method.empty(); }
};

[[nodiscard]] std::string encode_request(std::int64_t id, std::string_view method, const Json& params);
[[nodiscard]] std::string encode_notification(std::string_view method, const Json& params);
[[nodiscard]] std::string encode_result(std::int64_t id, const Json& result);
[[nodiscard]] std::string encode_error(std::int64_t id, const Error& error);
/// Error (kHarness) when the line is not a JSON-RPC 2.0 message; the fact "line" holds its beginning.
[[nodiscard]] Result<RpcMessage> decode(std::string_view line);

/// An Error as JSON {kind, message, facts, advice} and back; unknown kinds become kHarness.
[[nodiscard]] Json error_to_json(const Error& error);
[[nodiscard]] Error error_from_json(const Json& json);

/// Member `key` of a JSON object as a T, or an Error (kHarness) that names the key and what was there.
template <class T> [[nodiscard]] Result<T> field(const Json& object, const char* key) {
    try {
        return object.at(key).get<T>();
    } catch (const Json::exception& exception) {
        return fail(Error(ErrorKind::kHarness, std::string("bad member \"") + key + "\" in a control message")
                        .with("detail", exception.what()));
    }
}

} // namespace railbreak::launch
