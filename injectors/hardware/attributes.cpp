#include "injectors/hardware/attributes.hpp"

namespace railbreak::injectors::hardware {

AttributeView AttributeView::of(const nlmsghdr& record, std::size_t header_size) {
    AttributeView view;
    const std::size_t start = NLMSG_SPACE(header_size);
    if (record.nlmsg_len > start) {
        view.first_ = reinterpret_cast<const nlattr*>(reinterpret_cast<const char*>(&record) + start);
        view.size_ = static_cast<int>(record.nlmsg_len - start);
    }
    return view;
}

AttributeView AttributeView::inside(const nlattr& nest) {
    AttributeView view;
    view.first_ = static_cast<const nlattr*>(nla_data(&nest));
    view.size_ = nla_len(&nest);
    return view;
}

const nlattr* AttributeView::find(int type) const {
    return first_ != nullptr ? nla_find(first_, size_, type) : nullptr;
}

std::string AttributeView::text(int type) const {
    const nlattr* attribute = find(type);
    if (attribute == nullptr || nla_len(attribute) <= 0) {
        return {};
    }
    const auto* text = static_cast<const char*>(nla_data(attribute));
    return std::string(text, ::strnlen(text, static_cast<std::size_t>(nla_len(attribute))));
}

AttributeView AttributeView::nest(int type) const {
    const nlattr* attribute = find(type);
    return attribute != nullptr ? inside(*attribute) : AttributeView();
}

void AttributeView::for_each(const std::function<void(const nlattr&)>& each) const {
    int left = size_;
    for (const nlattr* attribute = first_; attribute != nullptr && nla_ok(attribute, left);
         attribute = nla_next(attribute, &left)) {
        each(*attribute);
    }
}

} // namespace railbreak::injectors::hardware
