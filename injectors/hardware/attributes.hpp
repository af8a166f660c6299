// Reading the attributes of a netlink record: types checked by size, nothing copied until a value is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>

#include <linux/netlink.h>
#include <netlink/attr.h>

namespace railbreak::injectors::hardware {

/// The attributes of one level of a record (struct nlattr, linux/netlink.h). Views the record, which must outlive it.
class AttributeView {
public:
    /// No attributes.
    AttributeView() = default;
    /// Those behind the family's fixed header of `header_size` bytes; none when the record is shorter than that.
    [[nodiscard]] static AttributeView of(const nlmsghdr& record, std::size_t header_size);
    /// Those nested in an attribute.
    [[nodiscard]] static AttributeView inside(const nlattr& nest);

    /// The first attribute of that type, or null.
    [[nodiscard]] const nlattr* find(int type) const;
    [[nodiscard]] bool has(int type) const { return find(type) != nullptr; }
    /// Its bytes as a T; nullopt when it is missing or shorter than a T. A longer one is cut, as newer kernels may
    /// have added members at the end.
    template <class T> [[nodiscard]] std::optional<T> value(int type) const {
        const nlattr* attribute = find(type);
        if (attribute == nullptr || nla_len(attribute) < static_cast<int>(sizeof(T))) {
            return std::nullopt;
        }
        T value{};
        std::memcpy(&value, nla_data(attribute), sizeof value);
        return value;
    }
    /// Its text up to the terminating zero, or "" when it is missing.
    [[nodiscard]] std::string text(int type) const;
    /// The attributes nested in it; none when it is missing.
    [[nodiscard]] AttributeView nest(int type) const;
    /// Calls each(attribute) in the record's order.
    void for_each(const std::function<void(const nlattr&)>& each) const;

private:
    const nlattr* first_ = nullptr;
    int size_ = 0; ///< bytes
};

} // namespace railbreak::injectors::hardware
