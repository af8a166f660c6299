// Reading a site policy: as strict as with scenarios, and with the same converters.
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "scenarios/fields.hpp"
#include "scenarios/limits.hpp"
#include "scenarios/load.hpp"
#include "scenarios/map_reader.hpp"
#include "scenarios/policy.hpp"
#include "scenarios/yaml_tree.hpp"

namespace railbreak::scenarios {

namespace {

constexpr std::array kTopKeys{KeySpec{"railbreak_policy", true},
                              KeySpec{"description"},
                              KeySpec{"blast_radius"},
                              KeySpec{"kinds"},
                              KeySpec{"hours"},
                              KeySpec{"max_duration"},
                              KeySpec{"max_lease"},
                              KeySpec{"never"}};
constexpr std::array kRadiusKeys{KeySpec{"hosts"}, KeySpec{"hosts_percent"}, KeySpec{"nics_per_host"},
                                 KeySpec{"ranks"}};
constexpr std::array kNeverKeys{KeySpec{"hosts"}, KeySpec{"nics"}};
constexpr std::size_t kMostEntries = 256;
constexpr std::int64_t kMostOfAnything = 1'000'000;
constexpr std::array<std::string_view, 7> kDayNames{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
constexpr std::string_view kHoursForm = R"(write "22:00-06:00", "sat-sun 00:00-24:00" or "mon,wed 12:00-13:30")";

/// "22:30" in minutes of the day; 24:00 is allowed.
std::optional<int> parse_time(std::string_view text) {
    if (text.size() != 5 || text[2] != ':') {
        return std::nullopt;
    }
    int hour = 0;
    int minute = 0;
    const auto whole = [](std::string_view digits, int& to) {
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
        return error == std::errc() && end == digits.data() + digits.size() && to >= 0;
    };
    if (!whole(text.substr(0, 2), hour) || !whole(text.substr(3), minute) || minute > 59 || hour > 24 ||
        (hour == 24 && minute != 0)) {
        return std::nullopt;
    }
    return hour * 60 + minute;
}

std::optional<std::size_t> parse_day(std::string_view text) {
    const auto found = std::ranges::find(kDayNames, text);
    return found == kDayNames.end() ? std::nullopt : std::optional<std::size_t>(found - kDayNames.begin());
}

/// "mon", "mon-fri", "fri-mon", "mon,wed,sat-sun".
std::optional<std::uint8_t> parse_days(std::string_view text) {
    unsigned days = 0;
    for (;;) {
        const std::size_t comma = text.find(',');
        const std::string_view part = text.substr(0, comma);
        const std::size_t dash = part.find('-');
        const auto first = parse_day(part.substr(0, dash));
        const auto last = dash == std::string_view::npos ? first : parse_day(part.substr(dash + 1));
        if (!first || !last) {
            return std::nullopt;
        }
        for (std::size_t day = *first;; day = (day + 1) % kDayNames.size()) {
            days |= 1U << day;
            if (day == *last) {
                break;
            }
        }
        if (comma == std::string_view::npos) {
            return static_cast<std::uint8_t>(days);
        }
        text.remove_prefix(comma + 1);
    }
}

std::optional<HourWindow> parse_window(std::string_view text) {
    HourWindow window;
    if (const std::size_t space = text.find(' '); space != std::string_view::npos) {
        const auto days = parse_days(text.substr(0, space));
        if (!days) {
            return std::nullopt;
        }
        window.weekdays = *days;
        text.remove_prefix(space + 1);
    }
    const std::size_t dash = text.find('-');
    const auto from = parse_time(text.substr(0, dash));
    const auto to = dash == std::string_view::npos ? std::nullopt : parse_time(text.substr(dash + 1));
    if (!from || !to || *from == 24 * 60 || *from == *to) {
        return std::nullopt;
    }
    window.from_minute = *from;
    window.to_minute = *to;
    return window;
}

class PolicyReader : private MapReader {
public:
    PolicyReader(DiagnosticSink& sink, FieldReader& fields) : MapReader(sink, fields) {}

    void read(const Field& root, SitePolicy& policy) {
        if (!fields_.check_map(root, {"", kTopKeys}) || !read_version(root)) {
            return;
        }
        with(root, "description", [&](const Field& field) { (void)fields_.text(field); });
        with(root, "blast_radius", [&](const Field& field) { read_radius(field, policy); });
        with(root, "kinds", [&](const Field& field) { read_kinds(field, policy); });
        with(root, "hours", [&](const Field& field) { read_hours(field, policy); });
        with(root, "max_duration", [&](const Field& field) {
            rule(field, fields_.duration(field, std::chrono::milliseconds(1), std::chrono::hours(24 * 365)),
                 policy.max_duration);
        });
        with(root, "max_lease",
             [&](const Field& field) { rule(field, fields_.duration(field, kMinLease, kMaxLease), policy.max_lease); });
        with(root, "never", [&](const Field& field) {
            if (fields_.check_map(field, {"never", kNeverKeys})) {
                with(field, "hosts", [&](const Field& list) { read_patterns(list, policy.never_hosts); });
                with(field, "nics", [&](const Field& list) { read_patterns(list, policy.never_nics); });
            }
        });
    }

private:
    template <class From, class T>
    static void rule(const Field& field, const std::optional<From>& value, std::optional<Ruled<T>>& to) {
        if (value) {
            to = Ruled<T>{T(*value), field.node->at};
        }
    }

    bool read_version(const Field& root) {
        bool supported = true;
        with(root, "railbreak_policy", [&](const Field& field) {
            const auto text = fields_.text(field);
            supported = text == "1";
            if (text && !supported) {
                fields_.complain(field, fmt::format("policy version {} is not supported", quote(*text)),
                                 "this build reads version 1: write \"railbreak_policy: 1\"");
            }
        });
        return supported;
    }

    void read_radius(const Field& map, SitePolicy& policy) {
        if (!fields_.check_map(map, {"blast_radius", kRadiusKeys})) {
            return;
        }
        const auto count = [&](std::string_view key, std::int64_t most, std::optional<Ruled<std::int64_t>>& to) {
            with(map, key, [&](const Field& field) { rule(field, fields_.integer(field, 0, most), to); });
        };
        count("hosts", kMostOfAnything, policy.hosts);
        count("hosts_percent", 100, policy.hosts_percent);
        count("nics_per_host", kMostOfAnything, policy.nics_per_host);
        count("ranks", kMostOfAnything, policy.ranks);
    }

    void read_kinds(const Field& field, SitePolicy& policy) {
        Ruled<std::vector<std::string>> kinds{{}, field.node->at};
        for (const Field& element : fields_.list(field, 0, kMostEntries)) {
            FaultKind kind = FaultKind::kCap;
            if (store_choice(element, kFaultKinds, kind)) {
                kinds.value.emplace_back(to_string(kind));
            }
        }
        policy.kinds = std::move(kinds);
    }

    void read_hours(const Field& field, SitePolicy& policy) {
        Ruled<std::vector<HourWindow>> hours{{}, field.node->at};
        for (const Field& element : fields_.list(field, 0, kMostEntries)) {
            const auto text = fields_.text(element);
            const auto window = text ? parse_window(*text) : std::nullopt;
            if (window) {
                hours.value.push_back(*window);
            } else if (text) {
                fields_.complain(element, fmt::format("{} is no span of hours", quote(*text)), std::string(kHoursForm));
            }
        }
        policy.hours = std::move(hours);
    }

    void read_patterns(const Field& field, std::vector<Ruled<std::string>>& to) {
        for (const Field& element : fields_.list(field, 0, kMostEntries)) {
            const auto text = fields_.text(element);
            if (text && text->empty()) {
                fields_.complain(element, "is empty", "write a name or a pattern like \"mgmt*\"");
            } else if (text) {
                to.push_back({*text, element.node->at});
            }
        }
    }
};

} // namespace

Checked<SitePolicy> load_policy(std::string_view text, std::string_view source_name) {
    const std::string source(source_name);
    if (const auto checked = check_text(text, source); !checked) {
        return tl::unexpected<Diagnostics>(Diagnostics{checked.error()});
    }
    const auto root = parse_yaml(std::string(text), source);
    if (!root) {
        return tl::unexpected<Diagnostics>(Diagnostics{root.error()});
    }
    DiagnosticSink sink(source);
    Origins origins;
    FieldReader fields(sink, origins);
    SitePolicy policy;
    policy.source = source;
    policy.text = text;
    PolicyReader(sink, fields).read({&*root, ""}, policy);
    if (!sink.empty()) {
        return tl::unexpected<Diagnostics>(std::move(sink).take());
    }
    return policy;
}

Checked<SitePolicy> load_policy_file(const std::string& path) {
    Checked<std::string> text = read_text_file(path, "a policy file");
    if (!text) {
        return tl::unexpected<Diagnostics>(std::move(text.error()));
    }
    return load_policy(*text, path);
}

} // namespace railbreak::scenarios
