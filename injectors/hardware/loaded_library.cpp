#include "injectors/hardware/loaded_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace railbreak::injectors::hardware {

Result<LoadedLibrary> LoadedLibrary::load(const std::string& name, std::string_view advice) {
    void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* why = ::dlerror();
        return fail(Error(ErrorKind::kRefused, fmt::format("cannot load {}", name))
                        .with("loader", why != nullptr ? why : "")
                        .advise(std::string(advice)));
    }
    return LoadedLibrary(handle, name);
}

Result<void> LoadedLibrary::check() const {
    if (missing_.empty()) {
        return {};
    }
    return fail(Error(ErrorKind::kRefused, fmt::format("{} has no {}", name_, missing_)));
}

void* LoadedLibrary::address(const char* symbol) const {
    return ::dlsym(handle_, symbol);
}

} // namespace railbreak::injectors::hardware
