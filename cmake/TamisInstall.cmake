# `cmake --install`: headers, static libraries and a CMake package with tamis::tamis and tamis::filter.
#
# The filters are an export set of their own, so that a client that wants only them needs neither LZ4 nor the store:
#   find_package(tamis REQUIRED)                      # both
#   find_package(tamis REQUIRED COMPONENTS filter)    # tamis::filter alone
# xxHash is inlined into our .cc files and is not needed by clients. Abseil types are part of the public headers, and Abseil promises no
# binary compatibility between versions: the package asks for exactly the version that Tamis was built with.
include(CMakePackageConfigHelpers)

set(TAMIS_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tamis)

install(TARGETS tamis_filter EXPORT tamisFilterTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tamis_base tamis_wal tamis_table tamis_tamis EXPORT tamisTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(module base filter table engine)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${module}/include/tamis DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
endforeach()
install(EXPORT tamisFilterTargets NAMESPACE tamis:: DESTINATION ${TAMIS_PACKAGE_DIR})
install(EXPORT tamisTargets NAMESPACE tamis:: DESTINATION ${TAMIS_PACKAGE_DIR})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tamisConfig.cmake.in ${PROJECT_BINARY_DIR}/tamisConfig.cmake
                              INSTALL_DESTINATION ${TAMIS_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tamisConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tamisConfig.cmake ${PROJECT_BINARY_DIR}/tamisConfigVersion.cmake DESTINATION ${TAMIS_PACKAGE_DIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tamis)
