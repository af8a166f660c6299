#include "harness/launch/rpc.hpp"

#include <gtest/gtest.h>

namespace railbreak::launch {
namespace {

TEST(Rpc, RequestResultAndNotificationSurviveTheTrip) {
    const RpcMessage request = decode(encode_request(7, "fault.apply", {{"id", 3}})).value();
    EXPECT_EQ(request.id, 7);
    EXPECT_EQ(request.method, "fault.apply");
    EXPECT_EQ(request.params.at("id"), 3);
    EXPECT_FALSE(request.is_reply());

    const RpcMessage result = decode(encode_result(7, {{"ok", true}})).value();
    EXPECT_TRUE(result.is_reply());
    EXPECT_EQ(result.result.at("ok"), true);

    const RpcMessage notification = decode(encode_notification("bye", {{"reason", "shutdown"}})).value();
    EXPECT_FALSE(notification.id.has_value());
    EXPECT_EQ(notification.method, "bye");
}

TEST(Rpc, AnErrorKeepsKindFactsAndAdvice) {
    const Error error = Error(ErrorKind::kRefused, "NIC rail0 carries the default route")
                            .with("host", "h3")
                            .with("nic", "rail0")
                            .advise("choose another NIC");
    const RpcMessage message = decode(encode_error(9, error)).value();
    ASSERT_TRUE(message.error.has_value());
    EXPECT_EQ(message.error->kind(), ErrorKind::kRefused);
    EXPECT_EQ(message.error->to_line(), error.to_line());
}

TEST(Rpc, TextThatIsNotUtf8IsReplacedAndNeverThrows) {
    const RpcMessage message = decode(encode_notification("event", {{"text", "caf\xe9"}})).value();
    EXPECT_EQ(message.params.at("text"), "caf\xef\xbf\xbd");
}

TEST(Rpc, RejectsWhatIsNotAMessage) {
    for (const char* line :
         {"", "hello", "[]", "{}", "{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":1}", "{\"jsonrpc\":\"2.0\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":1}", "{\"jsonrpc\":\"2.0\",\"method\":3}",
          "{\"jsonrpc\":\"2.0\",\"id\":1}", "{\"jsonrpc\":\"2.0\",\"method\":\"\"}"}) {
        const Result<RpcMessage> message = decode(line);
        ASSERT_FALSE(message) << line;
        EXPECT_EQ(message.error().kind(), ErrorKind::kHarness) << line;
    }
}

TEST(Rpc, AFieldOfTheWrongTypeIsAnErrorThatNamesIt) {
    const Json params{{"lease_ns", "ten"}};
    const Result<std::int64_t> wrong = field<std::int64_t>(params, "lease_ns");
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message().find("lease_ns"), std::string::npos);
    EXPECT_FALSE(field<std::string>(params, "absent"));
    EXPECT_FALSE(field<std::string>(Json::array(), "absent"));
}

} // namespace
} // namespace railbreak::launch
