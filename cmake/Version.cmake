# Writes base/version.hpp's values into a generated source at build time, so that the commit is that of the build.
set(RAILBREAK_VERSION_SOURCE ${PROJECT_BINARY_DIR}/generated/version.cpp)
add_custom_target(
    railbreak_version ALL
    COMMAND
        ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DTEMPLATE=${PROJECT_SOURCE_DIR}/cmake/version.cpp.in
        -DOUTPUT=${RAILBREAK_VERSION_SOURCE} -DRAILBREAK_VERSION=${PROJECT_VERSION}
        "-DRAILBREAK_COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
        -DRAILBREAK_BUILD_TYPE=${CMAKE_BUILD_TYPE} -P ${PROJECT_SOURCE_DIR}/cmake/write_version.cmake
    BYPRODUCTS ${RAILBREAK_VERSION_SOURCE}
    VERBATIM
)
