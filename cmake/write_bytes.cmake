# Writes the bytes of OBJECT as the C++ source OUTPUT that defines packet_program_object().
file(READ ${OBJECT} hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
string(REPEAT "." 80 line) # sixteen bytes
string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
file(
    WRITE ${OUTPUT}
    "#include \"injectors/programs/packet_program_object.hpp\"\n\nnamespace railbreak::injectors {\n\nnamespace {\n"
    "alignas(8) constexpr unsigned char kObject[] = {\n${bytes}};\n} // namespace\n\n"
    "std::span<const unsigned char> packet_program_object() {\n    return kObject;\n}\n\n"
    "} // namespace railbreak::injectors\n"
)
