# Common settings of every target, and two helpers: railbreak_library() and railbreak_test().

find_program(RAILBREAK_CCACHE ccache)
if(RAILBREAK_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${RAILBREAK_CCACHE})
endif()

add_library(railbreak_settings INTERFACE)
target_include_directories(railbreak_settings INTERFACE ${PROJECT_SOURCE_DIR})
# A designated initialiser leaves the other members at their defaults on purpose; -Wextra would warn of each.
target_compile_options(
    railbreak_settings INTERFACE -Wall -Wextra -Wconversion -Wswitch-enum -Werror -Wno-missing-field-initializers
                                 -fno-omit-frame-pointer
)
target_compile_definitions(railbreak_settings INTERFACE _GNU_SOURCE)
if(RAILBREAK_SANITIZE)
    target_compile_options(
        railbreak_settings INTERFACE -fsanitize=${RAILBREAK_SANITIZE} -fno-sanitize-recover=all
    )
    target_link_options(railbreak_settings INTERFACE -fsanitize=${RAILBREAK_SANITIZE})
endif()

# Sources of a target that stand beside each other are compiled together, some at a time: they instantiate the same
# templates, and a cold build takes half the time. So names in unnamed namespaces must differ within a target. The debug
# preset compiles each by itself, which shows a source that forgot an include.
option(RAILBREAK_UNITY "Compile several sources of a target together" ON)

function(railbreak_compile_together name)
    if(RAILBREAK_UNITY)
        set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
        # To the compiler every source that is not the first is a header, whose unnamed namespaces it doubts.
        target_compile_options(${name} PRIVATE -Wno-subobject-linkage)
    endif()
endfunction()

# railbreak_library(NAME SOURCES a.cpp ... LINK libs ... [SEPARATELY])
# SEPARATELY: each source is always compiled by itself.
function(railbreak_library name)
    cmake_parse_arguments(arg "SEPARATELY" "" "SOURCES;LINK" ${ARGN})
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PUBLIC railbreak_settings ${arg_LINK})
    if(NOT arg_SEPARATELY)
        railbreak_compile_together(${name})
    endif()
endfunction()

# Folders under tests/ whose tests also run under ThreadSanitizer; they get the label "threads".
set(RAILBREAK_THREADED_TESTS execute launch)

# Registers a program with CTest, whole or in shards NAME.1 ... NAME.n, which a parallel run begins with; sets `tests`
# to the names in the caller. They begin at the same time, so each appends a file name of its own to the folder that
# GTEST_OUTPUT names.
function(railbreak_register_test name shards)
    if(NOT shards)
        add_test(NAME ${name} COMMAND ${name})
        set(tests ${name} PARENT_SCOPE)
        return()
    endif()
    foreach(shard RANGE 1 ${shards})
        math(EXPR index "${shard} - 1")
        add_test(NAME ${name}.${shard} COMMAND ${name})
        set_tests_properties(
            ${name}.${shard}
            PROPERTIES COST 100 ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}"
                       ENVIRONMENT_MODIFICATION "GTEST_OUTPUT=string_append:${name}.${shard}.xml"
        )
        list(APPEND names ${name}.${shard})
    endforeach()
    set(tests ${names} PARENT_SCOPE)
endfunction()

# railbreak_test(NAME SOURCES a.cpp ... LINK libs ... [LABELS unit|lab|nics] [TIMEOUT seconds] [SHARDS n]
#                [RUNS_RAILBREAK] [TOGETHER])
# Links GoogleTest with its main(); registered with CTest as a whole. The target tests_<label> builds all of a label.
# Lab tests share the cores' time among their hosts, so each runs alone. Those with the label nics only have NICs of
# their own in private namespaces, and mostly wait for them: they may run beside each other and beside a build.
# SHARDS cuts a long test into n that can run at the same time. RUNS_RAILBREAK: it starts the program as a user does
# (tests/lab/support/railbreak_process.hpp), at the path RAILBREAK_BINARY.
# TOGETHER: its sources are compiled together, see above.
function(railbreak_test name)
    cmake_parse_arguments(arg "RUNS_RAILBREAK;TOGETHER" "TIMEOUT;SHARDS" "SOURCES;LINK;LABELS" ${ARGN})
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 120)
    endif()
    if(NOT arg_LABELS)
        set(arg_LABELS unit)
    endif()
    cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
    if("unit" IN_LIST arg_LABELS AND folder IN_LIST RAILBREAK_THREADED_TESTS)
        list(APPEND arg_LABELS threads)
    endif()
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE railbreak_settings ${arg_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
    if(arg_TOGETHER)
        railbreak_compile_together(${name})
    endif()
    if(arg_RUNS_RAILBREAK)
        target_link_libraries(${name} PRIVATE lab_railbreak_process)
    endif()
    railbreak_register_test(${name} "${arg_SHARDS}")
    set_tests_properties(${tests} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
    if("lab" IN_LIST arg_LABELS)
        set_tests_properties(${tests} PROPERTIES RUN_SERIAL TRUE)
    endif()
    foreach(label IN LISTS arg_LABELS)
        if(NOT TARGET tests_${label})
            add_custom_target(tests_${label})
        endif()
        add_dependencies(tests_${label} ${name})
    endforeach()
endfunction()
