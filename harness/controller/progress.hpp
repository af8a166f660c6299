// What a person sees while a run goes on: one line that renews itself on a terminal, plain lines elsewhere. On stderr.
#pragma once

#include <string>
#include <string_view>

namespace railbreak::controller {

/// See the file comment. Not thread-safe.
class Progress {
public:
    /// `terminal`: renew one line instead of writing many.
    explicit Progress(bool terminal) : terminal_(terminal) {}
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { end_line(); }

    /// Something that is going on now; replaced by the next call on a terminal. Elsewhere, of the calls in a row about
    /// one part of the work (when it has a name) only the first is told.
    void doing(std::string_view text, std::string_view part = {});
    /// Something worth keeping on the screen.
    void note(std::string_view text);
    /// Leaves the renewed line, before other output.
    void end_line();

private:
    bool terminal_;
    bool line_open_ = false;
    std::string part_; ///< of the last call
};

} // namespace railbreak::controller
