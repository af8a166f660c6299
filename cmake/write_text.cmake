# Writes the C++ source OUTPUT that defines reports::html::style_sheet(), the file STYLE, and script(), the files
# SCRIPTS (joined by '|') one after the other, each in a block of its own.
function(bytes_of hex result)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(REPEAT "." 160 line) # 32 bytes
    string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
    set(${result} "${bytes}" PARENT_SCOPE)
endfunction()

file(READ ${STYLE} style HEX)
set(script "")
string(REPLACE "|" ";" SCRIPTS "${SCRIPTS}")
foreach(file ${SCRIPTS})
    file(READ ${file} one HEX)
    string(APPEND script "${one}0a")
endforeach()
bytes_of("${style}" style)
bytes_of("${script}" script)
file(
    WRITE ${OUTPUT}
    "#include \"reports/html/assets.hpp\"\n\nnamespace railbreak::reports::html {\n\nnamespace {\n"
    "constexpr unsigned char kStyle[] = {\n${style}};\nconstexpr unsigned char kScript[] = {\n${script}};\n"
    "std::string_view text_of(const unsigned char* bytes, std::size_t size) {\n"
    "    return {reinterpret_cast<const char*>(bytes), size};\n}\n} // namespace\n\n"
    "std::string_view style_sheet() {\n    return text_of(kStyle, sizeof kStyle);\n}\n\n"
    "std::string_view script() {\n    return text_of(kScript, sizeof kScript);\n}\n\n"
    "} // namespace railbreak::reports::html\n"
)
