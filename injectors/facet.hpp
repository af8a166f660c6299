// One part of a host's state that faults change: how it is looked at, changed, read back and put back.
//
// A fault kind touches one or more facets (facets_of). The keeper composes all faults of a target into one WantedState
// and lets every facet that any of them touches go there; a facet of which nothing is wanted any more goes back to its
// former state. So every facet is a function from (former, wanted) to the kernel's state, and knows no other fault.
//
//   plan      -> looks, refuses foreign state by name, gives the former state; changes nothing
//   go_to     -> makes it so; idempotent, may be repeated after a failure at any step; undo is go_to with nothing
//   wanted observe   -> reads back that what is wanted is in force; success of a call is no proof verify    -> reads
//   back that the former state is there again, or what the remaining faults want
//
// Facets have no state of their own: everything comes from the journal entry, because after a crash somebody else goes
// on. They act through HostOps only. Kernel objects that end by themselves at a deadline (BPF programs, nft set
// elements) get `lease_end_boottime` of the context; go_to is called again at every renewal of the lease.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "injectors/composer.hpp"
#include "injectors/fault.hpp"
#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// What a facet needs besides the wanted state.
struct FacetContext {
    const FaultTarget& target;
    const std::string& owner;          ///< "railbreak RUN", for tags
    Nanoseconds lease_end_boottime{0}; ///< kernel-side deadlines
    /// plan() only: the entries of all open faults of this keeper, whatever their target.
    std::span<const JournalEntry* const> open_entries{};
};

/// Names and values of a read-back, unit in the name ("send_rate_bits_per_s").
using Readback = std::vector<std::pair<std::string, std::string>>;
/// Sentences about what was found gone or changed by others and was left alone.
using Notes = std::vector<std::string>;

/// What will be done and how it will be undone, for people, one sentence or kernel object a line.
struct Steps {
    std::vector<std::string> changes; ///< "rail0: htb class fb01:1 from 500Mbit/s to 250Mbit/s"
    std::vector<std::string> undo;    ///< in the order in which they will be undone
};

/// One facet. Objects are constant and live for ever: see facet().
class Facet {
public:
    Facet() = default;
    Facet(const Facet&) = delete;
    Facet& operator=(const Facet&) = delete;
    virtual ~Facet() = default;

    [[nodiscard]] virtual FacetKind kind() const = 0;
    /// Looks at the target for a fault that is the first to touch this facet. Gives the former state with everything
    /// that go_to and verify will need (the choice of mechanism too). kRefused with the reason when foreign state is in
    /// the way, when the kernel lacks what is needed or when permission is missing; kInput when the request makes no
    /// sense for this target.
    [[nodiscard]] virtual Result<std::string> plan(HostOps& ops, const FacetContext& context,
                                                   const FaultRequest& request) const = 0;
    /// Brings the facet to what `wanted` says; where it says nothing of this facet, back to `former`. Idempotent.
    [[nodiscard]] virtual Result<void> go_to(HostOps& ops, const FacetContext& context, const std::string& former,
                                             const WantedState& wanted) const = 0;
    /// Reads back that `wanted` is in force. kHarness when it is not.
    [[nodiscard]] virtual Result<Readback> observe(HostOps& ops, const FacetContext& context, const std::string& former,
                                                   const WantedState& wanted) const = 0;
    /// Reads back that the facet is as `wanted` says, or as before where nothing is wanted; kTeardown when something
    /// of ours is still there.
    [[nodiscard]] virtual Result<Notes> verify(HostOps& ops, const FacetContext& context, const std::string& former,
                                               const WantedState& wanted) const = 0;
    /// Removes what stays elsewhere when the target itself is gone (an ifb, a cgroup). Idempotent.
    [[nodiscard]] virtual Result<void> target_gone(HostOps& ops, const FacetContext& context,
                                                   const std::string& former) const = 0;
    /// What go_to(wanted) will change, and what the undo will change back. Says what would happen; touches nothing.
    [[nodiscard]] virtual Steps describe(const FacetContext& context, const std::string& former,
                                         const WantedState& wanted) const = 0;
    /// How it is done for this request, for people: "htb class rate in place". Empty when nothing of the former state
    /// is used.
    [[nodiscard]] virtual std::string mechanism(const std::string& former, const FaultRequest& request) const = 0;
    /// Looks whether a fault may join those that touch this facet already, whose plan was made without it. kRefused
    /// with the reason when the mechanism that was chosen then cannot make it.
    [[nodiscard]] virtual Result<void> join(const std::string&, const FaultRequest&) const { return {}; }
    /// What can be told at the end of a fault, just before it is undone: counts of what it did. Evidence, never a
    /// condition: what cannot be read is left out.
    [[nodiscard]] virtual Readback closing(HostOps&, const FacetContext&, const std::string& /*former*/,
                                           const WantedState&) const {
        return {};
    }
    /// The journal's form of the former state is checked with this when an entry is read. kInput when it is none.
    [[nodiscard]] virtual Result<void> check_former(const std::string& former) const = 0;
    /// True when go_to must be repeated at every renewal of the lease (kernel-side deadlines).
    [[nodiscard]] virtual bool renews(const std::string& former) const = 0;
};

/// The facet of a kind.
[[nodiscard]] const Facet& facet(FacetKind kind);

/// Facets that a request touches, in the order in which they are changed. A cap of one direction touches one.
[[nodiscard]] std::vector<FacetKind> facets_of(const FaultRequest& request);

/// "wire", "port", "driver" or "process": how close to a real failure of that kind the fault is.
[[nodiscard]] std::string_view realism_of(FaultKind kind);
/// What traffic feels it: "kernel TCP", "every path of the process", "none".
[[nodiscard]] std::string_view data_path_of(FaultKind kind);

} // namespace railbreak::injectors
