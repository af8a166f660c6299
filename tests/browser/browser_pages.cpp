// Writes the reports that the tests in a browser open: browser_pages FOLDER.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "reports/html/run_page.hpp"
#include "reports/html/suite_page.hpp"
#include "tests/unit/reports/report_fixture.hpp"

namespace {

/// Every name is markup or hard to print.
railbreak::record::RunData named_by_an_enemy() {
    railbreak::record::RunData data = railbreak::reports::bad_run();
    data.run.scenario_name = "<script>alert(1)</script>";
    data.run.command_line = "railbreak run '</pre><script>alert(3)</script>'";
    const std::string_view names[]{"h\"0'", "🔥 host", "<img src=x onerror=alert(2)>"};
    for (std::size_t host = 0; host < data.hosts.size(); ++host) {
        data.hosts[host].name = names[host % std::size(names)];
    }
    for (auto& event : data.events) {
        event.text = "\" onmouseover=\"alert(4) --><script>alert(5)</script>";
    }
    return data;
}

bool write(const std::filesystem::path& folder, std::string_view name, const std::string& page) {
    std::ofstream file(folder / (std::string(name) + ".html"), std::ios::binary);
    file << page;
    return static_cast<bool>(file.flush());
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: browser_pages FOLDER\n";
        return 64;
    }
    const std::filesystem::path folder = argv[1];
    using namespace railbreak::reports;
    const bool written = write(folder, "good", run_html(good_run())) && write(folder, "bad", run_html(bad_run())) &&
                         write(folder, "unfinished", run_html(unfinished_run())) &&
                         write(folder, "hostile", run_html(named_by_an_enemy())) &&
                         write(folder, "suite", suite_html(mixed_suite(), runs_of_mixed_suite()));
    return written ? 0 : 1;
}
