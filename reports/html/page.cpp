#include "reports/html/page.hpp"

#include <array>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "reports/html/assets.hpp"

namespace railbreak::reports::html {

namespace {

/// "'sha256-...'": what a policy calls an inline style or script that it allows.
std::string source_hash(std::string_view text) {
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data()); // NOLINT: C interface
    std::array<unsigned char, 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1> encoded{};
    const int length = EVP_EncodeBlock(encoded.data(), digest.data(), static_cast<int>(digest.size()));
    return fmt::format("'sha256-{}'", std::string(encoded.begin(), encoded.begin() + length));
}

Element head_of(const Page& page) {
    const std::string policy = fmt::format("default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri "
                                           "'none'; form-action 'none'",
                                           source_hash(style_sheet()), source_hash(script()));
    return element("head", {}, Element("meta", {{"charset", "utf-8"}}),
                   Element("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", policy}}),
                   Element("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}}),
                   Element("meta", {{"name", "color-scheme"}, {"content", "light dark"}}),
                   Element("meta", {{"name", "referrer"}, {"content", "no-referrer"}}),
                   element("title", {}, page.title),
                   element("style", {}, Element::verbatim(std::string(style_sheet()))));
}

Element top_bar(const Page& page) {
    Element list("ul");
    for (const Section& section : page.sections) {
        list.add(element("li", {}, element("a", {{"href", "#" + section.id}}, section.name)));
    }
    return element("header", {{"class", "top"}},
                   element("div", {{"class", "topbar"}}, element("span", {{"class", "brand"}}, "railbreak"),
                           element("nav", {{"aria-label", "Sections"}}, std::move(list))));
}

/// Patterns that style sheets refer to.
Element patterns() {
    return element(
        "svg", {{"class", "patterns"}, {"aria-hidden", "true"}, {"width", "0"}, {"height", "0"}},
        element(
            "defs", {},
            element("pattern",
                    {{"id", "hatch"},
                     {"width", "6"},
                     {"height", "6"},
                     {"patternUnits", "userSpaceOnUse"},
                     {"patternTransform", "rotate(45)"}},
                    Element("line", {{"class", "hatchline"}, {"x1", "0"}, {"x2", "0"}, {"y1", "0"}, {"y2", "6"}}))));
}

} // namespace

Element panel(Element content) {
    return element("div", {{"class", "panel"}}, std::move(content));
}

std::string page_html(Page page) {
    Element hero("div", {{"class", "hero"}});
    hero.add(element("p", {{"class", "kicker"}}, page.kicker)).add(element("h1", {}, page.heading));
    Element facts("ul", {{"class", "facts"}});
    for (Element& fact : page.facts) {
        facts.add(element("li", {}, std::move(fact)));
    }
    hero.add(std::move(facts));
    Element main("main", {{"id", "main"}});
    main.add(std::move(hero));
    for (Element& part : page.head) {
        main.add(std::move(part));
    }
    for (Section& section : page.sections) {
        Element made("section", {{"id", section.id}, {"aria-labelledby", section.id + "-head"}});
        made.add(element("h2", {{"id", section.id + "-head"}}, section.heading));
        if (!section.lead.empty()) {
            made.add(element("p", {{"class", "lead"}}, section.lead));
        }
        for (Element& part : section.content) {
            made.add(std::move(part));
        }
        main.add(std::move(made));
    }
    Element body("body");
    body.add(element("a", {{"class", "skip"}, {"href", "#main"}}, "Skip to the report"));
    body.add(top_bar(page)).add(std::move(main));
    body.add(element("footer", {}, page.footer)).add(patterns());
    body.add(element("script", {}, Element::verbatim(std::string(script()))));
    std::string out = "<!DOCTYPE html>\n";
    element("html", {{"lang", "en"}}, head_of(page), std::move(body)).write(out);
    return out;
}

} // namespace railbreak::reports::html
