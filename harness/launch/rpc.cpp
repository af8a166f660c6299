#include "harness/launch/rpc.hpp"

#include <array>

namespace railbreak::launch {

namespace {

constexpr std::array kKinds{ErrorKind::kUsage,   ErrorKind::kInput,    ErrorKind::kRefused, ErrorKind::kOutcome,
                            ErrorKind::kHarness, ErrorKind::kTeardown, ErrorKind::kInternal};

/// Application error code of JSON-RPC 2.0; the class of the error is in its data.
constexpr int kApplicationError = -32000;

std::string dump(const Json& json) {
    // Text from foreign programs may not be UTF-8; it is replaced, never a reason to throw.
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace

std::string encode_request(std::int64_t id, std::string_view method, const Json& params) {
    return dump({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
}

std::string encode_notification(std::string_view method, const Json& params) {
    return dump({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}});
}

std::string encode_result(std::int64_t id, const Json& result) {
    return dump({{"jsonrpc", "2.0"}, {"id", id}, {"result", result}});
}

std::string encode_error(std::int64_t id, const Error& error) {
    return dump(
        {{"jsonrpc", "2.0"},
         {"id", id},
         {"error", {{"code", kApplicationError}, {"message", error.message()}, {"data", error_to_json(error)}}}});
}

Result<RpcMessage> decode(std::string_view line) {
    const auto bad = [&](std::string_view why) {
        return fail(Error(ErrorKind::kHarness, std::string("not a control message: ") + std::string(why))
                        .with("line", std::string(line.substr(0, 120))));
    };
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || json.value("jsonrpc", Json()) != "2.0") {
        return bad("no JSON-RPC 2.0 object");
    }
    RpcMessage message;
    if (const auto id = json.find("id"); id != json.end()) {
        if (!id->is_number_integer()) {
            return bad("the id is not an integer");
        }
        message.id = id->get<std::int64_t>();
    }
    if (const auto method = json.find("method"); method != json.end()) {
        if (!method->is_string() || method->get_ref<const std::string&>().empty()) {
            return bad("the method is not a name");
        }
        message.method = method->get<std::string>();
        message.params = json.value("params", Json::object());
        return message;
    }
    if (!message.id) {
        return bad("neither method nor id");
    }
    if (const auto error = json.find("error"); error != json.end()) {
        message.error =
            error->contains("data") ? error_from_json(error->at("data")) : Error(ErrorKind::kHarness, dump(*error));
        return message;
    }
    if (!json.contains("result")) {
        return bad("a reply without result");
    }
    message.result = json.at("result");
    return message;
}

Json error_to_json(const Error& error) {
    Json facts = Json::array();
    for (const auto& [name, value] : error.facts()) {
        facts.push_back({name, value});
    }
    return {
        {"kind", to_string(error.kind())}, {"message", error.message()}, {"facts", facts}, {"advice", error.advice()}};
}

Error error_from_json(const Json& json) {
    try {
        ErrorKind kind = ErrorKind::kHarness;
        for (const ErrorKind candidate : kKinds) {
            if (json.at("kind") == to_string(candidate)) {
                kind = candidate;
            }
        }
        Error error(kind, json.at("message").get<std::string>());
        for (const Json& fact : json.at("facts")) {
            error.add_fact(fact.at(0).get<std::string>(), fact.at(1).get<std::string>());
        }
        return std::move(error).advise(json.at("advice").get<std::string>());
    } catch (const Json::exception& exception) {
        return {ErrorKind::kHarness, std::string("an unreadable error report: ") + exception.what()};
    }
}

} // namespace railbreak::launch
