// Libraries that are looked for at run time, so that one binary works with and without them.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace railbreak::injectors::hardware {

/// A shared library in this process. It is never unloaded: its code may have left handlers and threads behind.
class LoadedLibrary {
public:
    /// Loads it by soname or path. kRefused with the loader's words when it is not there; `advice` tells how to get it.
    [[nodiscard]] static Result<LoadedLibrary> load(const std::string& name, std::string_view advice);

    /// Sets a function pointer to the symbol of that name. False when there is none.
    template <class Function> bool find(const char* symbol, Function& function) const {
        function = reinterpret_cast<Function>(address(symbol)); // POSIX: an object pointer may hold a function's
        return function != nullptr;
    }
    /// As find(); the first missing symbol is noted for check().
    template <class Function> void require(const char* symbol, Function& function) {
        if (!find(symbol, function) && missing_.empty()) {
            missing_ = symbol;
        }
    }
    /// kRefused when a required symbol is missing: the library is another version.
    [[nodiscard]] Result<void> check() const;

private:
    LoadedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
    [[nodiscard]] void* address(const char* symbol) const;
    void* handle_;
    std::string name_;
    std::string missing_;
};

} // namespace railbreak::injectors::hardware
