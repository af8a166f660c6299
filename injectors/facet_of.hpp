// A facet whose former state is a type of its own: the encoding for the journal is dealt with here.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "injectors/facet.hpp"

namespace railbreak::injectors {

/// Base of every facet. `Former` is a value type; see Facet for what each function owes.
template <class Former> class FacetOf : public Facet {
public:
    [[nodiscard]] Result<std::string> plan(HostOps& ops, const FacetContext& context,
                                           const FaultRequest& request) const final {
        return look(ops, context, request).map([this](const Former& former) { return encode(former); });
    }
    [[nodiscard]] Result<void> go_to(HostOps& ops, const FacetContext& context, const std::string& former,
                                     const WantedState& wanted) const final {
        return decode(former).and_then([&](const Former& known) {
            return concerned(wanted) ? make(ops, context, known, wanted) : undo(ops, context, known);
        });
    }
    [[nodiscard]] Result<Readback> observe(HostOps& ops, const FacetContext& context, const std::string& former,
                                           const WantedState& wanted) const final {
        return decode(former).and_then([&](const Former& known) { return read_back(ops, context, known, wanted); });
    }
    [[nodiscard]] Result<Notes> verify(HostOps& ops, const FacetContext& context, const std::string& former,
                                       const WantedState& wanted) const final {
        return decode(former).and_then([&](const Former& known) -> Result<Notes> {
            if (!concerned(wanted)) {
                return verify_former(ops, context, known);
            }
            const auto seen = read_back(ops, context, known, wanted);
            return seen ? Result<Notes>(Notes())
                        : fail(ErrorKind::kTeardown, seen.error().message() + " (of the faults that remain)");
        });
    }
    [[nodiscard]] Result<void> target_gone(HostOps& ops, const FacetContext& context,
                                           const std::string& former) const final {
        return decode(former).and_then([&](const Former& known) { return clean_up(ops, context, known); });
    }
    [[nodiscard]] Steps describe(const FacetContext& context, const std::string& former,
                                 const WantedState& wanted) const final {
        const auto known = decode(former);
        return known && concerned(wanted) ? steps(context, *known, wanted) : Steps();
    }
    [[nodiscard]] std::string mechanism(const std::string& former, const FaultRequest& request) const final {
        const auto known = decode(former);
        return known ? words_for(*known, request) : std::string();
    }
    [[nodiscard]] Result<void> join(const std::string& former, const FaultRequest& request) const final {
        return decode(former).and_then([&](const Former& known) { return may_join(known, request); });
    }
    [[nodiscard]] Readback closing(HostOps& ops, const FacetContext& context, const std::string& former,
                                   const WantedState& wanted) const final {
        const auto known = decode(former);
        return known && concerned(wanted) ? closing_values(ops, context, *known, wanted) : Readback();
    }
    [[nodiscard]] Result<void> check_former(const std::string& former) const final {
        return decode(former).map([](const Former&) {});
    }
    [[nodiscard]] bool renews(const std::string& former) const final {
        const auto known = decode(former);
        return known && ends_by_itself(*known);
    }

protected:
    /// True when `wanted` asks anything of this facet.
    [[nodiscard]] virtual bool concerned(const WantedState& wanted) const = 0;
    [[nodiscard]] virtual Result<Former> look(HostOps& ops, const FacetContext& context,
                                              const FaultRequest& request) const = 0;
    /// go_to where something is wanted; idempotent.
    [[nodiscard]] virtual Result<void> make(HostOps& ops, const FacetContext& context, const Former& former,
                                            const WantedState& wanted) const = 0;
    /// go_to where nothing is wanted; idempotent.
    [[nodiscard]] virtual Result<void> undo(HostOps& ops, const FacetContext& context, const Former& former) const = 0;
    [[nodiscard]] virtual Result<Readback> read_back(HostOps& ops, const FacetContext& context, const Former& former,
                                                     const WantedState& wanted) const = 0;
    [[nodiscard]] virtual Result<Notes> verify_former(HostOps& ops, const FacetContext& context,
                                                      const Former& former) const = 0;
    /// target_gone; by default nothing stays elsewhere.
    [[nodiscard]] virtual Result<void> clean_up(HostOps&, const FacetContext&, const Former&) const { return {}; }
    [[nodiscard]] virtual Steps steps(const FacetContext& context, const Former& former,
                                      const WantedState& wanted) const = 0;
    [[nodiscard]] virtual std::string words(const Former& former) const = 0;
    /// mechanism(); by default the same for every request.
    [[nodiscard]] virtual std::string words_for(const Former& former, const FaultRequest&) const {
        return words(former);
    }
    [[nodiscard]] virtual Result<void> may_join(const Former&, const FaultRequest&) const { return {}; }
    [[nodiscard]] virtual Readback closing_values(HostOps&, const FacetContext&, const Former&,
                                                  const WantedState&) const {
        return {};
    }
    [[nodiscard]] virtual bool ends_by_itself(const Former&) const { return false; }

    [[nodiscard]] virtual std::string encode(const Former& former) const = 0;
    /// kInput when the bytes are no former state of this facet.
    [[nodiscard]] virtual Result<Former> decode(std::string_view bytes) const = 0;
};

} // namespace railbreak::injectors
