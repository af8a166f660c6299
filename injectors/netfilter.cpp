#include "injectors/netfilter.hpp"

namespace railbreak::injectors {

Result<void> commit_nft(int, const std::vector<std::string>&, std::string_view what) {
    return fail(ErrorKind::kRefused, "cannot " + std::string(what) + ": this build speaks no nftables");
}

Result<std::vector<std::string>> list_nft(int, std::string_view) {
    return fail(ErrorKind::kRefused, "this build speaks no nftables");
}

} // namespace railbreak::injectors
