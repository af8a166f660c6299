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

    /// Something that is going on now; replaced by the next call on a terminal.
    void doing(std::string_view text);
    /// Something worth keeping on the screen.
    void note(std::string_view text);
    /// Leaves the renewed line, before other output.
    void end_line();

private:
    bool terminal_;
    bool line_open_ = false;
};

} // namespace railbreak::controller
