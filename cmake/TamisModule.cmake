# One library a module. tamis_module(NAME DEPENDS ...): all .cc files below the current folder; public headers in include/.
#
# Sources are globbed: a folder is a module, and a file in it belongs to it.

add_library(tamis_settings INTERFACE)
target_compile_options(tamis_settings INTERFACE -fno-strict-aliasing)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(tamis_settings INTERFACE -Wall -Wextra -Wpedantic)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # False reports for std::string's operator+ (gcc.gnu.org/PR105651, fixed in 13).
    target_compile_options(tamis_settings INTERFACE -Wno-restrict)
  endif()
  if(TAMIS_WERROR)
    target_compile_options(tamis_settings INTERFACE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(tamis_settings INTERFACE -Wthread-safety)
  endif()
endif()
if(TAMIS_SANITIZE)
  target_compile_options(tamis_settings INTERFACE -fsanitize=${TAMIS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(tamis_settings INTERFACE -fsanitize=${TAMIS_SANITIZE})
endif()

function(tamis_module name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(tamis_${name} STATIC ${sources})
  add_library(tamis::${name} ALIAS tamis_${name})
  set_target_properties(tamis_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME ${name})
  target_include_directories(tamis_${name}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
           $<BUILD_INTERFACE:${TAMIS_XXHASH_INCLUDE_DIR}>
    PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_features(tamis_${name} PUBLIC cxx_std_20)
  target_link_libraries(tamis_${name} PUBLIC ${ARG_DEPENDS} PRIVATE $<BUILD_INTERFACE:tamis_settings>)
endfunction()
