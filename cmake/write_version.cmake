execute_process(
    COMMAND git describe --always --dirty --abbrev=12
    WORKING_DIRECTORY ${SOURCE_DIR}
    OUTPUT_VARIABLE RAILBREAK_COMMIT
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET
)
if(NOT RAILBREAK_COMMIT)
    set(RAILBREAK_COMMIT "unknown")
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
